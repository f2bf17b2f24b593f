package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tdf-framework/tdf/internal/worker/process"
)

// The exit statuses with which shells say that a command did not start.
const (
	exitNotFound      = "127"
	exitNotExecutable = "126"
)

// A commandError says why a command did not start. Its round fails with an exit status, as in a shell: the command may
// be misspelt, so other workers would not find it either.
type commandError struct{ exit, text string }

func (e *commandError) Error() string { return e.text }

// notStarted says how a round ended whose program did not start. Other errors than that of a command are returned.
func notStarted(err error) (Ended, error) {
	var command *commandError
	if errors.As(err, &command) {
		return Ended{Exit: command.exit, Reason: command.text}, nil
	}
	return Ended{}, err
}

// startCommand starts the command in the round's input, in a directory of this machine (docs/programs.md, "Commands
// without a program").
func (s *script) startCommand(_ context.Context, dir string, c process.Command) (*process.Process, error) {
	if len(c.Args) == 0 {
		return nil, &commandError{exitNotFound, "the input is empty: want a command and its arguments"}
	}
	name := c.Args[0]
	path, err := lookPath(name, dir, c.Env)
	if err != nil {
		return nil, err
	}
	c.Path, c.Args, c.Dir = path, c.Args[1:], dir
	p, err := s.host.Start(c)
	if errors.Is(err, syscall.ENOEXEC) && isText(path) { // as in a shell
		c.Path, c.Args = shell, append([]string{path}, c.Args...)
		p, err = s.host.Start(c)
	}
	info, dirErr := os.Stat(dir)
	switch {
	case err == nil:
		return p, nil
	case dirErr != nil || !info.IsDir():
		return nil, Unfit(fmt.Errorf("the directory of the command %s does not exist on this machine: %s", name, dir))
	case errors.Is(err, syscall.E2BIG):
		return nil, &commandError{exitNotExecutable, "the arguments of " + name + " are too long for this machine"}
	}
	return nil, &commandError{exitNotExecutable, fmt.Sprintf("start %s: %v", path, err)}
}

// lookPath returns the file of a command: for a name without a slash, the first in the program's PATH.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		return path, checkExecutable(name, path)
	}
	list := ""
	for _, variable := range env {
		value, found := strings.CutPrefix(variable, "PATH=")
		if found {
			list = value
		}
	}
	for _, d := range filepath.SplitList(list) {
		path := filepath.Join(d, name)
		if checkExecutable(name, path) == nil {
			return path, nil
		}
	}
	text := fmt.Sprintf("command not found: %s; it is in no directory of PATH (%s)", name, list)
	return "", &commandError{exitNotFound, text}
}

// checkExecutable checks a file before the start, because the kernel's error does not say whether the file or its
// interpreter is missing.
func checkExecutable(name, path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &commandError{exitNotFound, fmt.Sprintf("command not found: %s; there is no file %s", name, path)}
	case err != nil:
		return &commandError{exitNotExecutable, fmt.Sprintf("start %s: %v", name, err)}
	case info.IsDir():
		return &commandError{exitNotExecutable, fmt.Sprintf("start %s: %s is a directory", name, path)}
	case info.Mode()&0o111 == 0:
		text := fmt.Sprintf("start %s: %s is not executable; chmod +x makes it so", name, path)
		return &commandError{exitNotExecutable, text}
	}
	return nil
}
