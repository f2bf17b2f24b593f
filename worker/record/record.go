package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// A Record is open for one round. Its methods are fit for several goroutines.
type Record struct {
	Stdout, Stderr *os.File // what the program gets

	mu       sync.Mutex
	followed [2]stream // of Stdout and Stderr
	tail     ring
}

// Open makes the two files, and their directories where they are missing. What has such a name
// already is removed: what ran before may still write to it. The files have mode 0644, or 0600
// where they are private.
//
// The error says which of the two could not be made, and wraps the cause: [syscall.ENOSPC] where
// the disk is full.
func Open(outPath, errPath string, private bool) (*Record, error) {
	mode := fs.FileMode(0o644)
	if private {
		mode = 0o600
	}
	out, err := create(outPath, mode)
	if err != nil {
		return nil, fmt.Errorf("the file for stdout ([worker] task_output_filename): %w", err)
	}
	failure, err := create(errPath, mode)
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("the file for stderr ([worker] task_error_filename): %w", err)
	}
	return &Record{
		Stdout: out, Stderr: failure,
		followed: [2]stream{{file: out}, {file: failure}},
	}, nil
}

// create makes a file that is appended to, as a shell's >> does.
func create(path string, mode fs.FileMode) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, mode)
}

// Close lets go of the files; what a program still has of them it keeps.
func (r *Record) Close() {
	r.Stdout.Close()
	r.Stderr.Close()
}
