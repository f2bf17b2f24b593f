package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// A Record is open for one round. Its methods are fit for several goroutines.
type Record struct {
	Stdout, Stderr *os.File // what the program gets

	mu       sync.Mutex
	followed [2]stream // of Stdout and Stderr
	tail     ring
}

// Names are what the n-th execution of a round is to call what it leaves, without directories.
type Names struct {
	Stdout, Stderr string
	Beside         []string // what may come to lie beside the file for stdout
}

// Files say where the two files of a round are to be.
type Files struct {
	Stdout, Stderr Place
	Names          func(n int) Names // of the n-th execution, from 1 up
	Private        bool              // the files have mode 0600 instead of 0644
}

// A Place is where one of the files is to be.
type Place struct {
	Dir    *os.File // open, and still the caller's
	Shared bool     // rounds share the name: the file of the one before is removed
}

// mostExecutions is how many executions of one round a directory holds.
const mostExecutions = 1000

// Open makes the two files. It leaves what earlier executions of the round left: then n, the first number
// whose names are free, is above 1. A round has earlier executions when its id was given out again, after a
// loss in Redis (docs/programs.md, "How a program is run").
//
// The error says which of the two could not be made, and wraps the cause: [syscall.ENOSPC] where
// the disk is full.
func Open(f Files) (r *Record, n int, err error) {
	for n = 1; n <= mostExecutions; n++ {
		r, err = openAs(f, f.Names(n))
		if !errors.Is(err, fs.ErrExist) {
			return r, n, err
		}
	}
	return nil, 0, fmt.Errorf("%w (of %d executions of this round; move these files away)", err, mostExecutions)
}

// openAs fails with an [fs.ErrExist] where one of the names is taken.
func openAs(f Files, names Names) (*Record, error) {
	for _, name := range names.Beside {
		if !f.Stdout.Shared && isThere(f.Stdout.Dir, name) {
			return nil, taken(f.Stdout.Dir, name)
		}
	}
	if !f.Stderr.Shared && isThere(f.Stderr.Dir, names.Stderr) {
		return nil, taken(f.Stderr.Dir, names.Stderr)
	}
	out, err := f.create(f.Stdout, names.Stdout)
	if err != nil {
		return nil, fmt.Errorf("the file for stdout ([worker] task_output_filename): %w", err)
	}
	failure, err := f.create(f.Stderr, names.Stderr)
	if err != nil {
		out.Close()
		_ = unix.Unlinkat(int(f.Stdout.Dir.Fd()), names.Stdout, 0)
		return nil, fmt.Errorf("the file for stderr ([worker] task_error_filename): %w", err)
	}
	return &Record{
		Stdout: out, Stderr: failure,
		followed: [2]stream{{file: out}, {file: failure}},
	}, nil
}

func isThere(dir *os.File, name string) bool {
	var info unix.Stat_t
	return unix.Fstatat(int(dir.Fd()), name, &info, unix.AT_SYMLINK_NOFOLLOW) == nil
}

func taken(dir *os.File, name string) error {
	return &fs.PathError{Op: "create", Path: filepath.Join(dir.Name(), name), Err: fs.ErrExist}
}

// create makes a file that is appended to, as a shell's >> does. It opens nothing that is there already:
// what ran before may still write to it.
func (f Files) create(at Place, name string) (*os.File, error) {
	path := filepath.Join(at.Dir.Name(), name)
	if at.Shared {
		if err := unix.Unlinkat(int(at.Dir.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return nil, &fs.PathError{Op: "remove", Path: path, Err: err}
		}
	}
	mode := uint32(0o644)
	if f.Private {
		mode = 0o600
	}
	const flags = unix.O_RDWR | unix.O_CREAT | unix.O_EXCL | unix.O_APPEND | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(int(at.Dir.Fd()), name, flags, mode)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Close lets go of the files; what a program still has of them it keeps.
func (r *Record) Close() {
	r.Stdout.Close()
	r.Stderr.Close()
}
