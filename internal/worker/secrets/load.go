package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/tdf-framework/tdf/internal/lazy"
)

// MaxFile bounds the size of a file of secrets, in bytes.
const MaxFile = 64 << 10

// reserved is the prefix of the variables that the worker itself sets.
const reserved = "TDF_"

// sourceLine begins a line with a source of programs.
const sourceLine = reserved + "SOURCE="

var variable = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Read reads a file of NAME=value lines, in the format of docker's --env-file, and of TDF_SOURCE=source lines. It skips
// blank lines and lines that begin with #. The value is everything after the first =. Read expands nothing in the
// value, and keeps quotes. It accepts the line ends of Windows.
//
// Read returns an error if users other than the owner may read or write the file, or if a line is invalid. The error
// names the file and the line, but never shows the line.
func Read(f *os.File) (*Secrets, error) {
	if err := Private(f); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxFile {
		return nil, fmt.Errorf("%s: more than %d bytes", f.Name(), MaxFile)
	}
	env, sources, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return newSecrets(env, sources), nil
}

// Private returns an error if f is not a regular file that only its owner can use.
func Private(f *os.File) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: it is not a regular file", f.Name())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s: its mode is %04o, so users other than its owner can use it (chmod 600 %[1]s)", f.Name(),
			info.Mode().Perm())
	}
	return nil
}

// Text returns the text of a file with one secret, without blanks around it. Only the owner of the file may be able to
// use it. The error names the file.
func Text(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // to open a FIFO would otherwise wait for a writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := Private(f); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxFile))
	if text = bytes.TrimSpace(text); err == nil && len(text) == 0 {
		err = fmt.Errorf("%s is empty", path)
	}
	return text, err
}

func parse(data []byte) (env, sources []string, err error) {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	seen := map[string]bool{}
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.TrimLeft(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		if source, found := strings.CutPrefix(line, sourceLine); found {
			sources = append(sources, source)
			continue
		}
		name, err := checkLine(line)
		if err == nil && seen[name] {
			err = fmt.Errorf("%s is set twice", name)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", number, err)
		}
		seen[name] = true
		env = append(env, line)
	}
	return env, sources, nil
}

// checkLine returns the name in a line. Its errors show nothing of an invalid line, because the line may be a part of a
// secret.
func checkLine(line string) (name string, err error) {
	name, _, found := strings.Cut(line, "=")
	switch {
	case strings.ContainsRune(line, 0):
		return "", errors.New("it contains a NUL")
	case !found:
		return "", errors.New("it has no =; want NAME=value on one line")
	case !variable().MatchString(name):
		return "", errors.New("invalid name before the =; want letters, digits and _")
	case strings.HasPrefix(name, reserved):
		return "", fmt.Errorf("%s: names that begin with %s are reserved for the worker", name, reserved)
	}
	return name, nil
}
