package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf/internal/worker/process"
)

const (
	runScript = "./run.sh"
	shell     = "/bin/sh"
)

// A file that is open for writing cannot be executed. If this process forks while the worker writes run.sh, the new
// process has run.sh open for a moment. start then tries again.
const (
	busyTries = 100
	busyPause = 10 * time.Millisecond
)

// start starts ./run.sh as a shell would: if run.sh is a text without #!, /bin/sh runs it (docs/programs.md, "How a
// program is run"). The error names the problem for the program's author or the host's administrator.
func (s *script) start(ctx context.Context, dir string, c process.Command) (*process.Process, error) {
	args := c.Args
	c.Path, c.Dir = runScript, dir
	path := filepath.Join(dir, runScript)
	if err := s.checkFirstLine(path, dir, c.Env); err != nil {
		return nil, err
	}
	p, err := s.host.Start(c)
	for range busyTries {
		if !errors.Is(err, syscall.ETXTBSY) || !wait(ctx, time.After(busyPause)) {
			break
		}
		p, err = s.host.Start(c)
	}
	if errors.Is(err, syscall.ENOEXEC) && isText(path) {
		c.Path, c.Args = shell, append([]string{runScript}, args...)
		p, err = s.host.Start(c)
	}
	if err != nil {
		return nil, s.explain(path, err)
	}
	return p, nil
}

// explain returns an error that says why run.sh did not start.
func (s *script) explain(path string, err error) error {
	head, headErr := s.readHead(path)
	interpreter, _, script := shebang(head)
	switch {
	case errors.Is(headErr, errNotRegular):
		return headErr
	case errors.Is(headErr, fs.ErrNotExist):
		return Unfit(errors.New("run.sh does not exist: it was removed after the worker had checked it"))
	case errors.Is(err, syscall.ENOENT) && script:
		return Unfit(fmt.Errorf("run.sh asks for the interpreter %q, which this worker does not have", interpreter))
	case errors.Is(err, syscall.ENOENT):
		return Unfit(errors.New("run.sh is a binary whose loader or libraries this worker does not have"))
	case errors.Is(err, syscall.ENOEXEC):
		return Unfit(errors.New("run.sh is a binary that this machine cannot execute: it was built for another kind " +
			"of machine"))
	case errors.Is(err, syscall.EACCES) && script:
		return Unfit(fmt.Errorf("run.sh may not be executed: %w; check its mode, its interpreter %q, whether its "+
			"file system is mounted noexec, and whether all directories above it may be entered", syscall.EACCES,
			interpreter))
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("the input is too long for this machine: %w", syscall.E2BIG)
	}
	return Unfit(fmt.Errorf("run.sh could not be started: %w", err))
}

var errNotRegular = errors.New("run.sh is not a regular file; it must be the program's script")

// readHead returns the part of run.sh in which the kernel looks for an interpreter. It follows no link of another
// user, who may have no right to read that file.
func (s *script) readHead(path string) ([]byte, error) {
	if s.host.OtherUser() {
		return readHead(path, syscall.O_NOFOLLOW)
	}
	return readHead(path, 0)
}

func readHead(path string, flags int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|flags, 0) // opening a pipe would wait for a writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errNotRegular, err)
	}
	return io.ReadAll(io.LimitReader(f, 256))
}

// isText reports whether a file is text. As in shells, a file with a NUL in its first line is not text.
func isText(path string) bool {
	head, err := readHead(path, 0)
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return err == nil && !bytes.Contains(line, []byte{0})
}
