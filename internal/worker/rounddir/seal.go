package rounddir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/worker/safepath"
)

// Sealed is the result of Seal.
type Sealed struct {
	Path string // the path of the sealed directory
	// number of entries left out: links that lead out of files/, and entries that are neither files nor directories
	LeftOut int
	Example string // the first entry left out, relative to files/
}

// Names within the directory to which Seal moves files/. Programs cannot enter that directory.
const (
	givenDir = "given" // files/ as the program left it
	keptDir  = "files" // the entries that Seal has checked
)

// mostDeep bounds how deep directories in files/ may be nested.
const mostDeep = 100

// mostPasses bounds the passes over a directory while another program adds entries to it.
const mostPasses = 100

// Seal makes files/ safe for the worker to read. This is needed if programs run as another user. Other rounds of that
// user may have directories of files/ open, and change them.
//
// Seal moves files/ into a directory that only the worker can enter. There it makes new directories that belong to the
// worker, and moves every entry into them. Programs can then no longer replace an entry, and Seal checks it. The sealed
// directory contains only directories, files of that user, and links that do not lead out of it. If a file belongs to
// another user, Seal returns an error. The file may be a hard link to a file that the program cannot read. After an
// error, [Dir.KeepFiles] keeps all of files/.
//
// If programs run as the worker's user, they can read all that the worker can. Seal then returns files/ unchanged.
func (d *Dir) Seal(ctx context.Context) (Sealed, error) {
	if d.owner == nil {
		return Sealed{Path: d.in(filesDir)}, nil
	}
	closed, err := d.close()
	if err != nil {
		return Sealed{}, err
	}
	s := &seal{
		ctx: ctx, owner: d.owner.UID, device: d.dir.device,
		result: Sealed{Path: filepath.Join(closed.Name(), keptDir)},
	}
	d.sealed = closed
	if err := s.take(closed); err != nil {
		return Sealed{}, fmt.Errorf("files/%w", err)
	}
	d.checked = true
	return s.result, s.foreign
}

// close moves files/ into a directory that no program can enter, and returns that directory.
func (d *Dir) close() (*dir, error) {
	path := d.path + ".files"
	if err := RemoveAll(path); err != nil {
		return nil, err
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, err
	}
	closed, err := openDir(unix.AT_FDCWD, path, unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	if err := move(d.dir, filesDir, closed.File, givenDir, filesDir); err != nil {
		closed.Close()
		return nil, err
	}
	return closed, nil
}

// keepSealed keeps the entries that Seal has checked. If Seal could not check all of files/, keepSealed also keeps the
// entries that were not checked.
func (d *Dir) keepSealed(to *os.File, name string) error {
	if d.checked {
		return move(d.sealed, keptDir, to, name, filesDir)
	}
	parent, err := openDir(unix.AT_FDCWD, filepath.Dir(d.path), 0)
	if err != nil {
		return err
	}
	defer parent.Close()
	return move(parent, filepath.Base(d.sealed.Name()), to, name, filesDir)
}

// A seal moves the files of a program into directories that belong to the worker.
type seal struct {
	ctx     context.Context
	owner   int
	device  uint64
	result  Sealed
	found   []string // paths of links, relative to files/
	foreign error    // the first file of another user
}

func (s *seal) take(closed *dir) error {
	if err := s.directory(closed, givenDir, closed, keptDir, ".", 0); err != nil {
		return err
	}
	return s.links(s.result.Path)
}

// directory replaces a directory of the program: it makes a new directory, and moves all entries into it.
func (s *seal) directory(in *dir, name string, into *dir, as, path string, depth int) error {
	if depth > mostDeep {
		return fmt.Errorf("%s: it is nested more than %d directories deep", path, mostDeep)
	}
	from, err := openDir(in.fd(), name, unix.O_NOFOLLOW)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer from.Close()
	info, err := from.info()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if int(info.Uid) != s.owner || from.device != s.device {
		return fmt.Errorf("%s: the directory belongs to another user, or is on another file system", path)
	}
	if err := unix.Mkdirat(into.fd(), as, 0o700); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	to, err := openDir(into.fd(), as, unix.O_NOFOLLOW)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer to.Close()
	if err := s.entries(from, to, path, depth); err != nil {
		return err
	}
	return to.Chmod(fs.FileMode(info.Mode)&0o777 | 0o700)
}

// entries moves all entries of a directory. A program may add entries in the meantime. So entries makes up to
// mostPasses passes, until a pass finds nothing to move.
func (s *seal) entries(from, to *dir, path string, depth int) error {
	for range mostPasses {
		moved := false
		var first error
		err := from.each(func(name string) bool {
			var one bool
			one, first = s.entry(from, to, name, filepath.Join(path, name), depth)
			moved = moved || one
			return first == nil
		})
		if err = errors.Join(first, err); err != nil || !moved {
			return err
		}
	}
	return nil
}

func (s *seal) entry(from, to *dir, name, path string, depth int) (moved bool, err error) {
	if s.ctx.Err() != nil {
		return false, context.Cause(s.ctx)
	}
	var info unix.Stat_t
	if err := unix.Fstatat(from.fd(), name, &info, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return false, ignoreGone(err)
	}
	if info.Mode&unix.S_IFMT == unix.S_IFDIR {
		if safepath.IsThere(to.File, name) {
			return false, nil // this directory was moved before, and a program has added entries to it since
		}
		if err := s.directory(from, name, to, name, path, depth+1); err != nil {
			return false, err
		}
		// fails if a program has added an entry since; the entry is left behind
		_ = unix.Unlinkat(from.fd(), name, unix.AT_REMOVEDIR)
		return true, nil
	}
	if err := unix.Renameat(from.fd(), name, to.fd(), name); err != nil {
		return false, ignoreGone(err)
	}
	return true, s.check(to, name, path)
}

// check examines an entry that no program can replace any more.
func (s *seal) check(to *dir, name, path string) error {
	var info unix.Stat_t
	if err := unix.Fstatat(to.fd(), name, &info, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	switch info.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		if int(info.Uid) != s.owner && s.foreign == nil {
			s.foreign = fmt.Errorf("files/%s: the file belongs to another user", path)
		}
		return nil
	case unix.S_IFLNK:
		s.found = append(s.found, path) // the link's target is checked when all entries are in place
		return nil
	case unix.S_IFDIR:
		return fmt.Errorf("%s: a program replaced it during the check", path)
	}
	s.leftOut(path)
	return unix.Unlinkat(to.fd(), name, 0)
}

// links removes the links that lead out of the directory.
func (s *seal) links(top string) error {
	root, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, path := range s.found {
		if s.ctx.Err() != nil {
			return context.Cause(s.ctx)
		}
		if _, err := root.Stat(path); err == nil || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		s.leftOut(path)
		if err := root.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

func (s *seal) leftOut(path string) {
	s.result.LeftOut++
	if s.result.Example == "" {
		s.result.Example = path
	}
}

func ignoreGone(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
