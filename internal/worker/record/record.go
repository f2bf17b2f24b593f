package record

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// A Record holds the output of one round. Several goroutines may call its methods.
type Record struct {
	Stdout, Stderr *os.File // the program inherits these files; nil after [Spool.InMemory]

	outputs [2]output // stdout and stderr

	mu      sync.Mutex // guards the fields below
	streams [2]stream
	tail    ring
}

// A Spool is the directory in which the rounds of a worker have their files.
type Spool struct {
	Dir    string
	Before func() // called before the directory is made; may be nil
}

// A RoundRef says whose output a file contains.
type RoundRef struct {
	Program string
	Task    int64
	Round   int
}

var endings = [2]string{".out", ".err"}

// name returns the name of a file in the Spool. [Salvage] reads it.
func (of RoundRef) name(stream int) string {
	return fmt.Sprintf("%d-%d-%s%s", of.Task, of.Round, of.Program, endings[stream])
}

// Open makes the two files of a round: with mode 0600 if private is true, and with 0644 otherwise. The error wraps the
// cause: [syscall.ENOSPC] if the disk is full.
func (s *Spool) Open(of RoundRef, private bool) (*Record, error) {
	r := s.InMemory(of, private)
	for i := range r.outputs {
		if err := r.outputs[i].toFile(); err != nil {
			r.Release()
			return nil, fmt.Errorf("the files for the output: %w", err)
		}
	}
	r.Stdout, r.Stderr = r.outputs[0].file, r.outputs[1].file
	return r, nil
}

// InMemory returns the Record of a round that runs in the worker's process. The round writes to [Record.Writers]. It
// gets a file for a stream with more than [InMemory] bytes.
func (s *Spool) InMemory(of RoundRef, private bool) *Record {
	r := &Record{}
	for i := range r.outputs {
		o := &r.outputs[i]
		o.spool, o.of, o.stream, o.private = s, of, i, private
		r.streams[i].source = o
	}
	return r
}

// Writers returns the writers for the streams of a round that runs in the worker's process.
func (r *Record) Writers() (stdout, stderr io.Writer) {
	if r.Stdout != nil {
		return r.Stdout, r.Stderr
	}
	return &r.outputs[0], &r.outputs[1]
}

// Close ends the writing of a round that runs in the worker's process.
func (r *Record) Close() {
	for i := range r.outputs {
		r.outputs[i].close()
	}
}

// Unkept reports whether a stream has more than limit bytes and is not kept.
func (r *Record) Unkept(stream int, limit int64) bool {
	o := &r.outputs[stream]
	size, _, err := o.state()
	return err == nil && size > limit && o.keptAt() == ""
}

// Keep moves the file for a stream to a directory. If the name is taken, the error is [fs.ErrExist]. The record can
// still read the file.
func (r *Record) Keep(stream int, dir *os.File, name string) error {
	return r.outputs[stream].keep(dir, name)
}

// Lost returns an error if a stream lacks bytes that the round wrote in this process, for example because the disk is
// full. The round may have ignored the error of its write.
func (r *Record) Lost() error {
	for i := range r.outputs {
		if err := r.outputs[i].whyLost(); err != nil {
			return fmt.Errorf("%s could not be stored: %w", [2]string{"stdout", "stderr"}[i], err)
		}
	}
	return nil
}

// Release removes the files that are not kept. It must be the last call.
func (r *Record) Release() {
	for i := range r.outputs {
		r.outputs[i].release()
	}
}

// move gives a file a name in another directory. If a program has renamed the file, or if the directory is on another
// file system, it makes a copy. If the name is taken, the error is [fs.ErrExist].
func move(f, to *os.File, name string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(f.Name())
	if err != nil || !os.SameFile(info, there) {
		return write(io.NewSectionReader(f, 0, 1<<62), to, name, info.Mode())
	}
	err = unix.Linkat(unix.AT_FDCWD, f.Name(), int(to.Fd()), name, 0)
	switch {
	case errors.Is(err, unix.EEXIST):
		return &fs.PathError{Op: "create", Path: filepath.Join(to.Name(), name), Err: err}
	case err != nil:
		err = write(io.NewSectionReader(f, 0, 1<<62), to, name, info.Mode())
	}
	if err == nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// write makes a file in a directory.
func write(content io.Reader, to *os.File, name string, mode fs.FileMode) error {
	path := filepath.Join(to.Name(), name)
	fd, err := unix.Openat(int(to.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC,
		uint32(mode.Perm()))
	if err != nil {
		return &fs.PathError{Op: "create", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	_, err = io.Copy(f, content)
	err = errors.Join(err, f.Close())
	if err != nil {
		_ = unix.Unlinkat(int(to.Fd()), name, 0)
	}
	return err
}
