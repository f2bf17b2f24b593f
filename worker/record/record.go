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

// A Record holds the open files of one round. Several goroutines may call its methods.
type Record struct {
	Stdout, Stderr *os.File // the program inherits these files

	mu       sync.Mutex
	followed [2]stream // what Tail has read of Stdout and Stderr
	tail     ring
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
}

// A Place says where to make one of the files.
type Place struct {
	Dir    *os.File // open; the caller closes it
	Shared bool     // rounds share the file name, so the file of an earlier round is removed
}

// mostExecutions bounds how many executions of one round may have files in a directory.
const mostExecutions = 1000

// Open makes the two files for the n-th execution of the round. It keeps the files of earlier executions, so n is the
// first number for which all names are free. A round has earlier executions if Redis lost data, and then gave out the
// task's id again (docs/programs.md, "The output files").
//
// The error says which file could not be made, and wraps the cause: [syscall.ENOSPC] if the disk is full.
func Open(f Files) (r *Record, n int, err error) {
	for n = 1; n <= mostExecutions; n++ {
		r, err = openAs(f, f.Names(n))
		if !errors.Is(err, fs.ErrExist) {
			return r, n, err
		}
	}
	return nil, 0, fmt.Errorf("%w (of %d executions of this round; move these files away)", err, mostExecutions)
}

// openAs makes the two files. It returns [fs.ErrExist] if one of the names is taken.
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

// create makes a file. Programs append to the file, as with >> in a shell. create opens no existing file, since an
// earlier program may still write to it.
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

// Close closes the worker's descriptors of the files. The program keeps its own descriptors.
func (r *Record) Close() {
	r.Stdout.Close()
	r.Stderr.Close()
}
