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

// An Installed is a fetched program.
type Installed struct {
	Name    string
	LastUse time.Time // recorded time of the last use; the true time may be up to an hour later

	copyOf string // the program of which this is a copy
}

// Programs returns the fetched programs below a working directory, and the copies of programs. It skips directories
// made by hand. Copies come before their original, and were not used after it.
func Programs(dir string) ([]Installed, error) {
	entries, err := os.ReadDir(dir)
	var found []Installed
	for _, e := range entries {
		if !e.IsDir() || checkProgram(e.Name()) != nil {
			continue
		}
		if p, ok := readInstalled(dir, e.Name()); ok {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b Installed) int { return strings.Compare(b.Name, a.Name) }) // p~2 before p
	lastUse := map[string]time.Time{}
	for i, p := range found {
		if of := p.copyOf; of != "" && lastUse[of].Before(p.LastUse) {
			lastUse[of] = p.LastUse.Add(1)
		}
		if at := lastUse[p.Name]; p.LastUse.Before(at) {
			found[i].LastUse = at
		}
	}
	return found, err
}

// readInstalled returns the fetched program with the given name. It returns false if the program was not fetched, or if
// its directory cannot be read.
func readInstalled(dir, program string) (Installed, bool) {
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
		p.copyOf = o.CopyOf
	}
	return p, true
}

// recordIn returns the name and the info of the file that contains the record. After an interrupted removal, the file
// has the name removedName.
func recordIn(root *os.Root) (name string, info fs.FileInfo, err error) {
	for _, name = range []string{recordName, removedName} {
		info, err = root.Lstat(name)
		if err != nil && !gone(err) || err == nil && info.Mode().IsRegular() {
			return name, info, err
		}
	}
	return "", nil, fs.ErrNotExist
}

// maxJournal is the maximum size of a journal in bytes. A larger journal is not read. A program can write to its
// journal, and could fill the worker's memory.
const maxJournal = 256 << 20

// journalIn returns the journal of a complete program.
func journalIn(root *os.Root) (*journal, error) {
	o, err := readJournal(root)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w; remove the program's directory", journalName, err)
	}
	return o, nil
}

func readJournal(root *os.Root) (*journal, error) {
	var o journal
	data, err := readRegular(root, journalName, maxJournal)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, err
	}
	if !o.Done {
		return nil, errors.New("the program is incomplete")
	}
	for _, name := range o.Files {
		if !filepath.IsLocal(name) { // the programs' user can replace the journal of a copy
			return nil, fmt.Errorf("%q is not a path below the program's directory", name)
		}
	}
	return &o, nil
}

// openProgram opens a program's directory. If the directory is a symbolic link, openProgram returns an error.
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

// readRegular reads a regular file of at most limit bytes.
func readRegular(root *os.Root, name string, limit int64) ([]byte, error) {
	f, info, err := regular(root.OpenFile(name, readFlags, 0))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > limit {
		return nil, fmt.Errorf("the file has %d bytes, more than %d", info.Size(), limit)
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// readFlags are the flags with which files are opened for reading. With them, opening a link fails, and opening a pipe
// does not wait for a writer.
const readFlags = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW

var errNotRegular = errors.New("not a regular file")

// regular returns a regular file and its info. Its arguments are the results of opening the file. If the file is not a
// regular file, regular closes it and returns an error.
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

// The modification time of a program's record is the time of the program's last use. A worker updates this time when a
// round starts, at most once per touchEvery.
const touchEvery = time.Hour

// UsedFor is the time for which [Remove] keeps a program after its last recorded use.
const UsedFor = 2 * touchEvery

// Touch records a use of a fetched program. Call Touch once an hour while a round runs. Without these calls, another
// worker in the same working directory may remove the program. Touch ignores errors.
func Touch(dir, program string) {
	if checkProgram(program) == nil {
		_ = touch(filepath.Join(dir, program, recordName))
	}
}

// markUsed records a use of the program in dir. It returns false if the program is being removed.
func markUsed(dir string) bool {
	name := filepath.Join(dir, recordName)
	info, err := os.Lstat(name)
	if err == nil && !recent(info.ModTime()) {
		err = touch(name)
	}
	return !errors.Is(err, fs.ErrNotExist)
}

// recent reports whether t is less than touchEvery ago. A time in the future, which can occur after the clock was set
// back, is not recent.
func recent(t time.Time) bool {
	age := time.Since(t)
	return age >= 0 && age < touchEvery
}

// touch sets a file's modification time to now. It does not follow links, because a program can replace the file by a
// link.
func touch(name string) error {
	now := unix.NsecToTimespec(time.Now().UnixNano())
	return unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{now, now}, unix.AT_SYMLINK_NOFOLLOW)
}
