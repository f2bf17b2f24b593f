package retention

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A round holds the files that one round left.
type round struct {
	files  []file
	newest time.Time
	bytes  int64 // includes directories only if the search measures them
}

// A file is an output file, or a directory beside it.
type file struct {
	dir      *place
	name     string
	tree     bool
	modified time.Time
}

func (f file) path() string { return filepath.Join(f.dir.base, f.dir.below, f.name) }

// A place is a directory: base is a directory that the administrator controls, and below is the path from base to the
// place.
type place struct{ base, below string }

// A target is a pattern of the names to search for. For names of directories, tree is true.
type target struct {
	part
	tree bool
}

// A hunt is one search for targets, in all directories whose paths match the patterns dirs. Usually the output files
// and the error files are in the same directories, and share one hunt.
type hunt struct {
	base    string
	dirs    []part
	targets []target
}

// hunts returns a hunt for output files and the directories beside them, and a hunt for error files. If output files
// and error files are in the same directories, hunts returns a single hunt.
func hunts(output, failure *pattern) []*hunt {
	var all []*hunt
	add := func(p *pattern, targets ...target) {
		for _, h := range all {
			if h.base == p.base && text(h.dirs) == text(p.dirs) {
				h.targets = append(h.targets, targets...)
				return
			}
		}
		all = append(all, &hunt{p.base, p.dirs, targets})
	}
	if output != nil {
		add(output, target{output.file, false}, target{output.beside(".files"), true}, target{output.beside(".scratch"), true})
	}
	if failure != nil {
		add(failure, target{failure.file, false})
	}
	return all
}

func text(parts []part) string {
	var all []string
	for _, p := range parts {
		all = append(all, p.text)
	}
	return strings.Join(all, "/")
}

// A search finds the files of rounds.
type search struct {
	ctx     context.Context
	measure bool            // also measure the sizes of directories
	own     map[string]bool // paths of files that came with programs; they are not output files, even if their names match
	cutoff  time.Time       // empty directories of tasks are removed if they are older than this time
	fail    func(error)

	*hunt
	byValues map[values]*round
	rounds   []*round // in the order of the search, so that rounds of one directory are together
}

func (s *search) in(h *hunt) {
	s.hunt = h
	root, err := os.OpenRoot(h.base)
	if err != nil {
		s.fail(err)
		return
	}
	defer root.Close()
	s.walk(root, "", h.dirs, values{})
}

// walk searches below root, and returns whether the directory is empty.
func (s *search) walk(root *os.Root, below string, dirs []part, v values) (empty bool) {
	if len(dirs) > 0 && dirs[0].name == nil {
		s.descend(root, below, dirs, dirs[0].text, v)
		return false
	}
	entries, err := list(root)
	if err != nil {
		s.fail(err)
		return false
	}
	dir := &place{s.base, below}
	for _, e := range entries {
		switch {
		case s.ctx.Err() != nil:
			return false
		case len(dirs) == 0:
			s.take(root, dir, e, v)
		case e.IsDir():
			if v, ok := dirs[0].match(e.Name(), v); ok {
				s.descend(root, below, dirs, e.Name(), v)
			}
		}
	}
	return len(entries) == 0
}

func (s *search) descend(root *os.Root, below string, dirs []part, name string, v values) {
	child, info, err := open(root, name)
	if err != nil {
		if !errors.Is(err, fs.ErrPermission) || !foreign(info) {
			s.fail(err)
		}
		return
	}
	defer child.Close()
	if s.walk(child, filepath.Join(below, name), dirs[1:], v) && dirs[0].ofTask() && info.ModTime().Before(s.cutoff) {
		_ = root.Remove(name) // Remove fails if the directory has an entry by now
	}
}

// take adds a file with a matching name to its round.
func (s *search) take(root *os.Root, dir *place, e fs.DirEntry, v values) {
	if !e.IsDir() && !e.Type().IsRegular() {
		return
	}
	for _, t := range s.targets {
		if t.tree != e.IsDir() {
			continue
		}
		if v, ok := t.match(e.Name(), v); ok {
			s.add(root, file{dir: dir, name: e.Name(), tree: t.tree}, v)
			return
		}
	}
}

func (s *search) add(root *os.Root, f file, v values) {
	if s.own[f.path()] {
		return
	}
	info, err := root.Lstat(f.name)
	if err != nil {
		s.fail(err)
		return
	}
	f.modified = info.ModTime()
	r := s.byValues[v]
	if r == nil {
		r = &round{}
		s.byValues[v] = r
		s.rounds = append(s.rounds, r)
	}
	r.files = append(r.files, f)
	if f.modified.After(r.newest) {
		r.newest = f.modified
	}
	if !f.tree {
		r.bytes += info.Size()
	} else if s.measure {
		r.bytes += size(root, f.name)
	}
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
func open(root *os.Root, name string) (*os.Root, fs.FileInfo, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.IsDir() {
		return nil, nil, fs.ErrNotExist // there is no directory of that name
	}
	child, err := root.OpenRoot(name)
	if err != nil {
		return nil, info, err
	}
	if now, err := child.Stat("."); err != nil || !os.SameFile(info, now) {
		child.Close()
		return nil, info, errors.Join(err, fs.ErrNotExist)
	}
	return child, info, nil
}

// foreign reports whether a directory belongs to another user, like lost+found. No worker leaves files there.
func foreign(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) != os.Geteuid()
}

// size returns the total size of the files in a directory.
func size(root *os.Root, name string) (sum int64) {
	child, _, err := open(root, name)
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
