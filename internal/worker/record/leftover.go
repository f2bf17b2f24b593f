package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A Leftover has the files that a Slot of a killed worker has left.
type Leftover struct {
	RoundRef

	at    int
	files [2]*spare // nil for a stream without output
}

// Streams returns the streams with output: 0 for stdout, 1 for stderr.
func (l *Leftover) Streams() (streams []int) {
	for i, f := range l.files {
		if f != nil {
			streams = append(streams, i)
		}
	}
	return streams
}

// Keep moves the file for a stream to a directory. If the name is taken, the error is [os.ErrExist].
func (l *Leftover) Keep(stream int, dir *os.File, name string) error {
	f := l.files[stream]
	kept, err := f.moveTo(l.at, dir, name)
	if err == nil && kept != f.File {
		kept.Close()
	}
	return err
}

func (l *Leftover) close() {
	for _, i := range l.Streams() {
		l.files[i].Close()
	}
}

// Salvage calls keep for each round whose output the Slots of a killed worker left in the directory at path. It removes
// no file. No other process may use the directory.
//
// Programs may have changed the files. Salvage calls leftOut for each file that it leaves out for this reason.
func Salvage(path string, keep func(*Leftover), leftOut func(file string, why error)) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	dir := os.NewFile(uintptr(fd), path)
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		if !strings.HasSuffix(name, labelEnding) {
			continue
		}
		l, err := readLabel(fd, name)
		if err != nil {
			leftOut(filepath.Join(path, name), err)
			continue
		}
		left := &Leftover{RoundRef: l.RoundRef, at: fd}
		for i, name := range l.Files {
			if left.files[i], err = openLeftover(fd, name); err != nil {
				leftOut(filepath.Join(path, name), err)
			}
		}
		if len(left.Streams()) > 0 {
			keep(left)
		}
		left.close()
	}
	return err
}

// maxLabel bounds how much of a label is read, in bytes.
const maxLabel = 4 << 10

var errNoLabel = errors.New("the file is not as a worker writes it")

func readLabel(at int, name string) (l label, err error) {
	f, err := openRegular(at, name)
	if err != nil {
		return l, err
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, maxLabel)).ReadBytes('\n')
	if json.Unmarshal(line, &l) != nil || l.Number < 0 || l.Number > mostExecutions {
		return l, errNoLabel
	}
	for _, name := range l.Files {
		if name != "" && name != filepath.Base(name) {
			return l, errNoLabel
		}
	}
	return l, nil
}

// openLeftover opens a file that a label names. It returns nil if there is no such file, or if the file is empty.
func openLeftover(at int, name string) (*spare, error) {
	if name == "" {
		return nil, nil
	}
	f, err := openRegular(at, name)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil // the worker had kept this file
	}
	if err != nil {
		return nil, err
	}
	left := &spare{File: f, fd: int(f.Fd()), name: name}
	if err = unix.Fstat(left.fd, &left.info); err == nil && left.info.Size > 0 {
		return left, nil
	}
	f.Close()
	return nil, err
}

// openRegular opens a regular file that has only one name.
func openRegular(at int, name string) (*os.File, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var info unix.Stat_t
	switch err = unix.Fstat(fd, &info); {
	case err != nil:
	case info.Mode&unix.S_IFMT != unix.S_IFREG:
		err = errors.New("the file is not a regular file")
	case info.Nlink != 1:
		err = fmt.Errorf("the file has %d names", info.Nlink)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
