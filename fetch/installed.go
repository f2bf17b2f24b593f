package fetch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// An Installed is a program that was fetched.
type Installed struct {
	Name    string
	LastUse time.Time // exact to an hour: it may have been used that much later
	Bytes   int64     // of its files
	Files   []string  // what came, and what setup.sh made of it, without run.sh: below its directory, with slashes
}

// Programs returns the programs below a working directory that were fetched, in no particular
// order. Directories made by hand are none of them.
func Programs(dir string) ([]Installed, error) {
	entries, err := os.ReadDir(dir)
	var found []Installed
	for _, e := range entries {
		if !e.IsDir() || checkProgram(e.Name()) != nil {
			continue
		}
		if p, ok := installed(dir, e.Name()); ok {
			found = append(found, p)
		}
	}
	return found, err
}

// installed is false where there is no such program, or no telling: then it is left alone.
func installed(dir, program string) (Installed, bool) {
	root, err := openProgram(dir, program)
	if err != nil {
		return Installed{}, false
	}
	defer root.Close()
	_, info, err := recordIn(root)
	if err != nil {
		return Installed{}, false
	}
	p := Installed{Name: program, LastUse: info.ModTime()}
	if o, err := journalIn(root); err == nil {
		p.Files, p.Bytes = o.Files, o.bytes(root)
	}
	return p, true
}

// recordIn returns the record, or what is left of it by a removal that was interrupted.
func recordIn(root *os.Root) (name string, info fs.FileInfo, err error) {
	for _, name = range []string{recordName, removedName} {
		if info, err = root.Lstat(name); err == nil && !info.Mode().IsRegular() {
			err = fs.ErrNotExist
		}
		if err == nil || !gone(err) {
			return name, info, err
		}
	}
	return "", nil, fs.ErrNotExist
}

// mostJournal, in bytes: a program can write to its journal.
const mostJournal = 256 << 20

// journalIn returns the journal of a complete program.
func journalIn(root *os.Root) (*journal, error) {
	var o journal
	data, err := readRegular(root, journalName, mostJournal)
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	if err == nil && !o.Done {
		err = errors.New("it says that the program is incomplete")
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be used (%w); remove the program's directory", journalName, err)
	}
	return &o, nil
}

// bytes is what the program's files take, as long as they are there.
func (o *journal) bytes(root *os.Root) (sum int64) {
	for _, name := range append(slices.Clone(o.Files), runScript) {
		if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
	}
	return sum
}

// openProgram opens a directory that is none behind a link.
func openProgram(dir, program string) (*os.Root, error) {
	name := filepath.Join(dir, program)
	info, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, unix.ENOTDIR
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if now, err := root.Stat("."); err != nil || !os.SameFile(info, now) {
		root.Close()
		return nil, unix.ENOTDIR
	}
	return root, nil
}

// readRegular waits for nobody who might write to a pipe.
func readRegular(root *os.Root, name string, most int64) ([]byte, error) {
	f, info, err := regular(root.OpenFile(name, reading, 0))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > most {
		return nil, fmt.Errorf("it has %d bytes, more than %d", info.Size(), most)
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// reading are the flags to read what may be something else: a link is not followed, and a pipe is
// not waited for.
const reading = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW

var errNotRegular = errors.New("it is not a regular file")

// regular returns what was opened, and what it is, if it is a regular file. Else it closes it.
func regular(f *os.File, err error) (*os.File, fs.FileInfo, error) {
	if errors.Is(err, unix.ELOOP) {
		return nil, nil, fmt.Errorf("%w: %w", errNotRegular, err)
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func checkProgram(name string) error {
	if name == "" || name[0] == '.' || name[0] == '-' || strings.ContainsAny(name, "/\\\x00") {
		return fmt.Errorf("%.50q is not the name of a program", name)
	}
	return nil
}
