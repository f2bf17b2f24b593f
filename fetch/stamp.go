package fetch

import (
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A stamp tells whether a file has changed since it was taken.
type stamp struct {
	mode         uint32
	inode        uint64
	size         int64
	mtime, ctime int64 // in nanoseconds
}

func stampAt(dir int, name string) (stamp, error) {
	var s unix.Stat_t
	if err := unix.Fstatat(dir, name, &s, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return stamp{}, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	return stamp{s.Mode, s.Ino, s.Size, s.Mtim.Nano(), s.Ctim.Nano()}, nil
}

func (s stamp) kind() uint32 { return s.mode & unix.S_IFMT }

// A saved is the part of a stamp that holds as long as the content of the file: size and time of the last change. The
// journal keeps it, so that a later process notices a change. A file system may change the inode number in the
// meantime.
type saved [2]int64

// savedAt returns zeros for a directory, because rounds may add files to it, and for a file that is missing.
func savedAt(dir int, name string) saved {
	s, _ := stampAt(dir, name)
	if s.kind() == unix.S_IFDIR {
		return saved{}
	}
	return saved{s.size, s.mtime}
}

// A tree is some files of a directory, with the stamps that they had.
type tree struct {
	dir    string
	names  []string
	stamps []stamp
	grows  func(dir string) bool // whether files may be added to a directory

	checked time.Time // when some of the files were last checked
	whole   time.Time // when all of them were last checked
	took    time.Duration
}

// everywhere is the grows of a tree in which rounds run.
func everywhere(string) bool { return true }

// newTree returns the tree of the named files, as they are now. The first files are checked most often: run.sh, then
// those in few directories.
func newTree(dir string, names []string, grows func(dir string) bool) (*tree, error) {
	names = slices.Clone(names)
	slices.SortStableFunc(names, func(a, b string) int { return depth(a) - depth(b) })
	t := &tree{dir: dir, grows: grows}
	d, err := openDirectory(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	for _, name := range names {
		s, err := t.stamp(int(d.Fd()), name)
		switch {
		case err == nil:
			t.names, t.stamps = append(t.names, name), append(t.stamps, s)
		case !gone(err): // setup.sh may have removed it
			return nil, err
		}
	}
	t.whole = time.Now()
	t.checked = t.whole
	return t, nil
}

// stamp returns the stamp of a file as it is now. That of a directory to which files may be added has only its kind.
func (t *tree) stamp(dir int, name string) (stamp, error) {
	s, err := stampAt(dir, name)
	if s.kind() == unix.S_IFDIR && t.grows(name) {
		s = stamp{mode: s.mode}
	}
	return s, err
}

func depth(name string) int {
	if name == runScript {
		return -1
	}
	return strings.Count(name, "/")
}

// A check before a round costs at most a few percent of a round: a stat takes about a microsecond.
// docs/decisions/copies.md has the figures.
const (
	// all files are checked when this time has passed, or wholeShare times as long as that took
	wholePause   = time.Second
	wholeShare   = 300
	fewOfCopy    = 64                     // so many files of a copy are checked before each round
	fewOfOrigin  = 16                     // and so many of a directory made by hand
	mostFiles    = 1000                   // and at most so many, except when all are
	timePerCheck = 100 * time.Microsecond // since the last check, for each of the others
)

// due returns how many files to check now, if not all.
func (t *tree) due(now time.Time, few int) int {
	n := min(mostFiles, max(few, int(now.Sub(t.checked)/timePerCheck)))
	t.checked = now
	if n >= len(t.names) || now.Sub(t.whole) >= max(wholePause, wholeShare*t.took) {
		return len(t.names)
	}
	return n
}

// check returns the indices of files that have changed. It checks some of the files.
func (t *tree) check(few int) ([]int, error) {
	began := time.Now()
	n := t.due(began, few)
	all, err := t.changed(n)
	if n == len(t.names) {
		t.whole, t.took = began, time.Since(began)
	}
	return all, err
}

// changed returns the indices of the files that have changed, among the first n.
func (t *tree) changed(n int) ([]int, error) {
	d, err := unix.Open(t.dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: t.dir, Err: err}
	}
	defer unix.Close(d)
	var all []int
	for i, name := range t.names[:n] {
		if s, err := t.stamp(d, name); err != nil || s != t.stamps[i] {
			all = append(all, i)
		}
	}
	return all, nil
}

func openDirectory(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY, 0)
}

// withParents returns names with the directories above them. A directory precedes its files.
func withParents(names []string) []string {
	known := make(map[string]bool, len(names))
	all := make([]string, 0, len(names))
	var add func(name string)
	add = func(name string) {
		if name == "." || known[name] {
			return
		}
		add(path.Dir(name))
		known[name] = true
		all = append(all, name)
	}
	for _, name := range names {
		add(name)
	}
	return all
}
