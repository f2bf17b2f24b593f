package rounddir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/worker/secrets"
)

// Names of the entries of a round's directory.
const (
	ProgressFile   = "progress"
	CheckpointFile = "checkpoint"
	UpdatesFile    = "updates"
	ResultFile     = "result.json"
	openFile       = "open.jsonl"
	unfitFile      = "unfit"
	lastErrorFile  = "last_error"
	afterFile      = "after"
	inputFile      = "input"
	ScratchDir     = "scratch" // files that are removed with the round
)

// Before contains the task's input, if it has any bytes, the data of its earlier rounds, and of the tasks that it
// waited for.
type Before struct {
	Input      []byte // nil if the input is arguments
	Checkpoint []byte // empty if there is no checkpoint
	LastError  string // the error of the previous round; "" if it had no error

	After func(w io.Writer) error // writes what the task waited for; nil if it waited for nothing
}

// An Owner is the user and group of a program that does not run as the worker's user.
type Owner struct{ UID, GID int }

// Limits bound the data that the worker reads, in bytes. 0 means that it reads nothing.
type Limits struct {
	Checkpoint int64 // size of the file checkpoint
	Result     int64 // size of result.json
	Updates    int64 // all updates of the round together
}

// A Dir is the directory of one round, or the files in memory of a round that has no directory ([InMemory]). Several
// goroutines may call its methods.
type Dir struct {
	path    string
	dir     *dir
	owner   *Owner
	limits  Limits
	secrets *secrets.Secrets

	mu       sync.Mutex
	seen     state
	reported map[string]bool // kinds of problems that were reported
	held     map[string]held // the files in memory
}

// Create makes the directory at path. It first removes any old directory there. Only the user owner can use the new
// directory. A nil owner means the worker's user. The methods of the Dir mask the values of s in the updates, the
// result and the progress. The argument s may be nil.
func Create(path string, before Before, owner *Owner, limits Limits, s *secrets.Secrets) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := RemoveAll(path); err != nil {
		return nil, err
	}
	d := &Dir{path: path, owner: owner, limits: limits}
	if err = d.make(); err != nil {
		return nil, errors.Join(err, RemoveAll(path))
	}
	d, err = d.Again(before, s)
	if err != nil {
		return nil, errors.Join(err, d.Remove())
	}
	// "." comes last: until then no other user can enter the directory
	err = d.giveAway(ScratchDir, CheckpointFile, lastErrorFile, afterFile, inputFile, ".")
	if err != nil {
		return nil, errors.Join(err, d.Remove())
	}
	return d, nil
}

// Again returns a Dir for another round that uses the same directory. The directory must be [Dir.Untouched]. The
// caller must not use the old Dir any more. After an error, the caller must call Remove.
func (d *Dir) Again(before Before, s *secrets.Secrets) (*Dir, error) {
	again := &Dir{
		path: d.path, dir: d.dir, owner: d.owner, limits: d.limits, secrets: s,
	}
	if err := again.fill(before); err != nil {
		return again, err
	}
	if len(before.Checkpoint) > 0 {
		again.seen.checkpoint = sum(before.Checkpoint)
	}
	return again, nil
}

func (d *Dir) make() (err error) {
	if err := os.MkdirAll(filepath.Dir(d.path), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(d.path, 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(d.in(ScratchDir), 0o755); err != nil {
		return err
	}
	d.dir, err = openDir(unix.AT_FDCWD, d.path, unix.O_NOFOLLOW)
	return err
}

// fill writes the data from before the round into the directory.
func (d *Dir) fill(before Before) error {
	for name, data := range map[string][]byte{
		CheckpointFile: before.Checkpoint,
		lastErrorFile:  []byte(before.LastError),
	} {
		if len(data) == 0 {
			continue
		}
		if err := d.writeFile(name, func(w io.Writer) error { _, err := w.Write(data); return err }); err != nil {
			return err
		}
	}
	if before.Input != nil {
		if err := d.writeFile(inputFile,
			func(w io.Writer) error { _, err := w.Write(before.Input); return err }); err != nil {
			return err
		}
	}
	if before.After == nil {
		return nil
	}
	return d.writeFile(afterFile, before.After)
}

// writeFile makes a file. It follows no link that a program made.
func (d *Dir) writeFile(name string, content func(io.Writer) error) error {
	fd, err := unix.Openat(d.dir.fd(), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC,
		0o644)
	if err != nil {
		return &os.PathError{Op: "create", Path: d.in(name), Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	if err := content(f); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

func (d *Dir) giveAway(names ...string) error {
	if d.owner == nil {
		return nil
	}
	for _, name := range names {
		err := unix.Fchownat(d.dir.fd(), name, d.owner.UID, d.owner.GID, unix.AT_SYMLINK_NOFOLLOW)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("give %s to the program's user: %w", d.in(name), err)
		}
	}
	return nil
}

func (d *Dir) in(name string) string { return filepath.Join(d.path, name) }

// Path returns the path of the directory: the value of TDF_DIR.
func (d *Dir) Path() string { return d.path }

// Remove removes the directory with everything in it, even if the program has removed permissions. The caller must call
// it once, after all other methods, when no process of the program runs any more.
func (d *Dir) Remove() error { return d.RemoveUntil(never) }

// RemoveUntil is Remove, but it calls the function enough for each entry, and stops with an error when enough returns
// true. RemoveUntil and Remove may then be called again.
func (d *Dir) RemoveUntil(enough func() bool) error {
	d.dir.Close()
	return removeAll(d.path, enough)
}
