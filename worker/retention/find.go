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

// A round is what one round left.
type round struct {
	files  []file
	newest time.Time
	bytes  int64 // known before it is removed only if the search measures
}

// A file is an output file, or a directory beside it.
type file struct {
	dir      *place
	name     string
	tree     bool
	modified time.Time
}

func (f file) path() string { return filepath.Join(f.dir.base, f.dir.below, f.name) }

// A place is a directory, below one that is the administrator's.
type place struct{ base, below string }

// A target is what a search looks for in the directories of a pattern.
type target struct {
	part
	tree bool
}

// A hunt is a search in all directories that match; the two outputs mostly share theirs.
type hunt struct {
	base    string
	dirs    []part
	targets []target
}

// hunts are those for output files and what lies beside them, and for error files.
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

// A search collects rounds.
type search struct {
	ctx     context.Context
	measure bool            // the sizes of directories, too
	own     map[string]bool // paths that are no output, whatever their names
	cutoff  time.Time       // directories of tasks that are empty, and older than this, go
	fail    func(error)

	*hunt
	byValues map[values]*round
	rounds   []*round // in the order in which they are met: those of a directory together
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

// walk looks into what is below root; it says whether nothing is there.
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
		_ = root.Remove(name) // not if something is there now
	}
}

// take adds what has a name that is looked for to its round.
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

// list returns what is in a directory as it comes.
func list(root *os.Root) ([]fs.DirEntry, error) {
	d, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.ReadDir(-1)
}

// open opens a directory, and not what a link leads to.
func open(root *os.Root, name string) (*os.Root, fs.FileInfo, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.IsDir() {
		return nil, nil, fs.ErrNotExist // no directory of that name
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

// foreign: another user's, such as lost+found, in which a worker has left nothing.
func foreign(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) != os.Geteuid()
}

// size is what the files in a directory take.
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
