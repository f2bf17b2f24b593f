package retention

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A round holds the files that one execution of a round left.
type round struct {
	files  []file
	newest time.Time
	bytes  int64 // includes directories only if they are measured
}

// A file is an output file, or a directory beside it.
type file struct {
	dir      *place
	name     string
	identity identity
	own      int // how many directories at the end of dir were made for the task
	tree     bool
	modified time.Time
}

func (f file) path() string { return filepath.Join(f.dir.base, f.dir.below, f.name) }

// A place is a directory: base is a directory that the administrator controls, and below is the path from base to the
// place.
type place struct{ base, below string }

// find finds the files that the journals name. It removes the files of journals whose files are all gone.
func (r *run) find(ctx context.Context) {
	r.byRound, r.places, r.found = map[string]*round{}, map[place]*place{}, map[string]bool{}
	journals, err := os.OpenRoot(filepath.Join(r.Dir, journalDir))
	if err != nil {
		r.fail(err)
		return
	}
	defer journals.Close()
	entries, err := list(journals)
	r.fail(err)
	for _, e := range entries {
		f, err := openSegment(journals, e.Name())
		r.fail(err)
		if f == nil {
			continue
		}
		info, err := f.Stat()
		some, whole := r.readSegment(ctx, f)
		f.Close()
		if err == nil && whole && !some && info.ModTime().Before(r.now.Add(-2*segmentTime)) {
			r.fail(journals.Remove(e.Name()))
		}
	}
	r.found = nil
}

var errChanged = errors.New("the file is not as a worker wrote it, so the files that it names are not removed")

// openSegment opens a file of a journal. It returns nil if the file belongs to another user, and an error if another
// user may have written to it: the removals have the rights of this user.
func openSegment(dir *os.Root, name string) (*os.File, error) {
	f, err := dir.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var info unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &info)
	foreign := int(info.Uid) != os.Geteuid()
	if err == nil && (info.Mode&unix.S_IFMT != unix.S_IFREG || info.Nlink != 1 || info.Mode&0o022 != 0) {
		err = errChanged
	}
	switch {
	case foreign:
		f.Close()
		return nil, nil
	case err != nil:
		f.Close()
		return nil, &os.PathError{Op: "read", Path: filepath.Join(dir.Name(), name), Err: err}
	}
	return f, nil
}

// maxLine bounds the length of a line in a journal. A path has at most 4096 bytes, and JSON may write six bytes for
// each.
const maxLine = 64 << 10

// readSegment takes the files that a file of a journal names. some says that some of them still exist. whole says that
// the call has seen the whole file. Lines that are incomplete, or that a program has changed, are skipped.
func (r *run) readSegment(ctx context.Context, f io.Reader) (some, whole bool) {
	lines := bufio.NewReaderSize(io.LimitReader(f, segmentBytes+maxLine), maxLine)
	for ctx.Err() == nil {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return some, errors.Is(err, io.EOF)
		}
		var e entry
		if json.Unmarshal(line, &e) == nil && e.isValid() {
			some = r.take(e) || some
		}
	}
	return some, false
}

func (e entry) isValid() bool {
	return filepath.IsLocal(e.Path) && filepath.Clean(e.Path) == e.Path && e.Path != "." &&
		(e.Base == "" || filepath.IsAbs(e.Base))
}

// take adds a file to its round. It returns false if nothing is left of the file.
func (r *run) take(e entry) bool {
	base := e.Base
	if base == "" {
		base = r.Dir
	}
	below, name := filepath.Split(e.Path)
	f := file{dir: r.place(place{base, filepath.Clean(below)}), name: name, identity: e.identity, own: e.Own}
	if r.found[f.path()] {
		return true
	}
	info, err := r.remover.stat(f)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return !r.removeDirs(f)
	case err != nil:
		r.fail(err)
		return true
	}
	r.found[f.path()] = true
	f.tree, f.modified = info.IsDir(), info.ModTime()
	r.add(e.Round, f, info.Size())
	return true
}

// place returns a pointer that is the same for equal places.
func (r *run) place(p place) *place {
	if r.places[p] == nil {
		r.places[p] = &p
	}
	return r.places[p]
}

func (r *run) add(of string, f file, bytes int64) {
	o := r.byRound[of]
	if o == nil {
		o = &round{}
		r.byRound[of] = o
		r.rounds = append(r.rounds, o)
	}
	o.files = append(o.files, f)
	if f.modified.After(o.newest) {
		o.newest = f.modified
	}
	if !f.tree {
		o.bytes += bytes
	} else if r.MaxBytes > 0 {
		o.bytes += size(r.remover.root, f.name)
	}
}

// removeDirs removes empty directories that were made for the task of a file that is gone. It returns false if one of
// them is new: a round may be about to use it.
func (r *run) removeDirs(f file) (done bool) {
	below := f.dir.below
	for range min(f.own, strings.Count(below, "/")+1) {
		parent, name := filepath.Split(below)
		below = filepath.Clean(parent)
		if err := r.remover.enter(r.place(place{f.dir.base, below})); err != nil {
			continue // the parent is gone, too
		}
		info, err := r.remover.root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil, !info.IsDir():
			return true
		case info.ModTime().After(r.now.Add(-Young)):
			return false
		case unix.Unlinkat(int(r.remover.dir.Fd()), name, unix.AT_REMOVEDIR) != nil:
			return true // it has entries
		}
	}
	return true
}

// list returns the entries of a directory in their order on the disk.
func list(root *os.Root) ([]fs.DirEntry, error) {
	d, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.ReadDir(-1)
}

// open opens a directory. It follows no link.
func open(root *os.Root, name string) (*os.Root, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fs.ErrNotExist // there is no directory of that name
	}
	child, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if now, err := child.Stat("."); err != nil || !os.SameFile(info, now) {
		child.Close()
		return nil, errors.Join(err, fs.ErrNotExist)
	}
	return child, nil
}

// size returns the total size of the files in a directory.
func size(root *os.Root, name string) (sum int64) {
	child, err := open(root, name)
	if err != nil {
		return 0
	}
	defer child.Close()
	_ = fs.WalkDir(child.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}
