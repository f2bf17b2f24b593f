package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/worker/safepath"
)

// A Record holds the open files of one round. Several goroutines may call its methods.
type Record struct {
	Stdout, Stderr *os.File // the program inherits these files; nil after NewInMemory

	slot   *Slot // nil if both files have names of their own
	memory [2]*memory
	spill  *spill // nil unless the round runs in the worker's process

	mu     sync.Mutex
	closed bool
	spare  [2]bool   // which of the files for stdout and stderr belong to the slot
	places [2]string // the paths of the files that do not belong to the slot
	files  [2]stream
	tail   ring
}

// Names are the file names of the n-th execution of a round, without directories.
type Names struct {
	Stdout, Stderr string
	Beside         []string // names of directories that may be kept beside the file for stdout
}

// Files says where to make the two files of a round.
type Files struct {
	Stdout, Stderr Place
	Names          func(n int) Names // names for the n-th execution, from 1
	Private        bool              // make the files with mode 0600 instead of 0644

	Slot  *Slot    // has the files of a Place without Dir
	Round RoundRef // whose output the files will contain
}

// A Place says where to make one of the files.
type Place struct {
	Dir    *os.File // open; the caller closes it; nil means that the round uses a file of the Slot
	Shared bool     // rounds share the file name, so the file of an earlier round is removed
}

// mostExecutions bounds how many executions of one round may have files in a directory.
const mostExecutions = 1000

// Open makes the two files for the n-th execution of the round. It keeps the files of earlier executions, so n is the
// first number for which all names are free. A round has earlier executions if Redis lost data, and then gave out the
// task's id again (docs/programs.md, "The output files"). n is 0 if both files belong to the Slot.
//
// The error says which file could not be made, and wraps the cause: [syscall.ENOSPC] if the disk is full.
func Open(f Files) (r *Record, n int, err error) {
	if f.Stdout.Dir == nil && f.Stderr.Dir == nil {
		r = &Record{}
		if err := r.openSpares(f); err != nil {
			return nil, 0, err
		}
		return r, 0, nil
	}
	for n = 1; n <= mostExecutions; n++ {
		f.Round.Number = n
		r, err = openAs(f, f.Names(n))
		if !errors.Is(err, fs.ErrExist) {
			return r, n, err
		}
	}
	return nil, 0, tooMany(err)
}

func tooMany(err error) error {
	return fmt.Errorf("%w (of %d executions of this round; move these files away)", err, mostExecutions)
}

// openAs makes the two files. It returns [fs.ErrExist] if one of the names is taken.
func openAs(f Files, names Names) (*Record, error) {
	if err := f.taken(names); err != nil {
		return nil, err
	}
	r := &Record{}
	if err := r.create(f, names); err != nil {
		r.Close()
		if r.Stdout != nil {
			_ = unix.Unlinkat(int(f.Stdout.Dir.Fd()), names.Stdout, 0)
		}
		if r.Stderr != nil {
			_ = unix.Unlinkat(int(f.Stderr.Dir.Fd()), names.Stderr, 0)
		}
		return nil, err
	}
	return r, nil
}

// create makes the two files. After an error, r has only files that create has made in their directories.
func (r *Record) create(f Files, names Names) error {
	out, err := f.create(f.Stdout, names.Stdout)
	if err != nil {
		return fmt.Errorf("the file for stdout ([worker] task_output_filename): %w", err)
	}
	r.setFile(0, out)
	failure, err := f.create(f.Stderr, names.Stderr)
	if err != nil {
		return fmt.Errorf("the file for stderr ([worker] task_error_filename): %w", err)
	}
	r.setFile(1, failure)
	return r.openSpares(f)
}

// taken returns [fs.ErrExist] if the name of a directory beside the file for stdout is taken, or the name of the file
// for stderr. The name of the file for stdout is checked when the file is made.
func (f Files) taken(names Names) error {
	if f.Stdout.Dir != nil && !f.Stdout.Shared {
		for _, name := range names.Beside {
			if safepath.IsThere(f.Stdout.Dir, name) {
				return taken(f.Stdout.Dir, name)
			}
		}
	}
	if f.Stderr.Dir != nil && !f.Stderr.Shared && safepath.IsThere(f.Stderr.Dir, names.Stderr) {
		return taken(f.Stderr.Dir, names.Stderr)
	}
	return nil
}

// Free returns the first number for which all names of the round are free. Both places must have a directory.
func Free(f Files) (n int, err error) {
	for n = 1; n <= mostExecutions; n++ {
		names := f.Names(n)
		if err = f.taken(names); err == nil && (f.Stdout.Shared || !safepath.IsThere(f.Stdout.Dir, names.Stdout)) {
			return n, nil
		}
	}
	return 0, tooMany(taken(f.Stdout.Dir, f.Names(1).Stdout))
}

// setFile sets the file that the program inherits as stream i. f may be nil.
func (r *Record) setFile(i int, f *os.File) {
	if f == nil {
		return
	}
	r.files[i].source, r.places[i] = onDisk{f}, f.Name()
	*[2]**os.File{&r.Stdout, &r.Stderr}[i] = f
}

// openSpares opens the slot's file for each stream that has no file yet.
func (r *Record) openSpares(f Files) error {
	spare := [2]bool{r.Stdout == nil, r.Stderr == nil}
	if !spare[0] && !spare[1] {
		return nil
	}
	program, err := f.Slot.open(f.Round, spare, f.Private)
	if err != nil {
		return fmt.Errorf("the files for the output: %w", err)
	}
	r.slot, r.spare = f.Slot, spare
	for i := range spare {
		if spare[i] {
			r.setFile(i, program[i])
			r.files[i].source, r.places[i] = onDisk{f.Slot.files[i].File}, ""
		}
	}
	return nil
}

func taken(dir *os.File, name string) error {
	return &fs.PathError{Op: "create", Path: filepath.Join(dir.Name(), name), Err: fs.ErrExist}
}

// create makes a file, unless the slot has a file for the stream. Programs append to the file, as with >> in a shell.
// create opens no existing file, since an earlier program may still write to it.
func (f Files) create(at Place, name string) (*os.File, error) {
	if at.Dir == nil {
		return nil, nil
	}
	path := filepath.Join(at.Dir.Name(), name)
	if at.Shared {
		if err := unix.Unlinkat(int(at.Dir.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return nil, &fs.PathError{Op: "remove", Path: path, Err: err}
		}
	}
	const flags = unix.O_RDWR | unix.O_CREAT | unix.O_EXCL | unix.O_APPEND | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(int(at.Dir.Fd()), name, flags, mode(f.Private))
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Close closes the worker's descriptors of the files, except those of the slot. The program keeps its own descriptors.
// Only Unkept, Keep and Release may be called afterwards; Tail and Silent then find nothing.
func (r *Record) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for i, f := range []*os.File{r.Stdout, r.Stderr} {
		if f != nil {
			f.Close()
		}
		if r.memory[i] != nil {
			r.memory[i].close()
		}
		if own, ok := r.files[i].source.(onDisk); ok && own.File != f && !r.spare[i] {
			own.Close()
		}
	}
	if r.spill != nil {
		r.spill.close()
	}
}

// Unkept returns the streams whose files belong to the slot, and have more than limit bytes.
func (r *Record) Unkept(limit int64) (streams []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, spare := range r.spare {
		if !spare {
			continue
		}
		if size, _, err := r.files[i].source.state(); err == nil && size > limit {
			streams = append(streams, i)
		}
	}
	return streams
}

// Keep takes the file for a stream from the slot, and moves it to a directory. If the name is taken, the error is
// [fs.ErrExist]. The record can still read the file.
func (r *Record) Keep(stream int, dir *os.File, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept, err := r.keep(stream, dir, name)
	if err != nil {
		return err
	}
	r.spare[stream], r.places[stream], r.files[stream].source = false, filepath.Join(dir.Name(), name), onDisk{kept}
	if r.closed {
		kept.Close()
	}
	return nil
}

func (r *Record) keep(stream int, dir *os.File, name string) (*os.File, error) {
	if m := r.memory[stream]; m != nil && !m.isInFile() {
		return m.copyTo(dir, name, r.spill.private)
	}
	return r.slot.keep(stream, dir, name)
}

// Lost returns an error if a stream lacks bytes that the round wrote in this process, for example because the disk is
// full. The round may have ignored the error of its write.
func (r *Record) Lost() error {
	for i, m := range r.memory {
		if m == nil {
			continue
		}
		if err := m.whyLost(); err != nil {
			return fmt.Errorf("%s could not be stored: %w", [2]string{"stdout", "stderr"}[i], err)
		}
	}
	return nil
}

// Release empties the files of the slot. The slot's next round can then use them. Release must be the last call.
func (r *Record) Release() {
	for i, spare := range r.spare {
		if spare && (r.memory[i] == nil || r.memory[i].isInFile()) {
			r.slot.empty(i)
		}
	}
}
