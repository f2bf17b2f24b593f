package process

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	cgroupFile = "cgroup.procs"
	subtree    = "cgroup.subtree_control"
)

// controllers are those that are made use of, in the kernel's names.
var controllers = []string{"memory", "pids"}

// A cgroups is the directory that a Host has its programs' cgroups in.
type cgroups struct {
	own     string // the directory of the cgroup that this process was started in
	dir     string // below it
	path    string // dir, as /proc/PID/cgroup names it
	leaf    string // where this process was moved to; "": nowhere
	lock    *os.File
	enabled []string          // in own, by us
	has     map[string]bool   // controllers that programs' cgroups have
	lacks   map[string]string // why they have others not
	stale   int               // processes of an earlier Host that were ended
	stuck   []proc            // those that did not end
	count   atomic.Uint64
}

// newCgroups makes the directory. With sole this process is moved, where controllers can be had by that.
func newCgroups(name string, sole bool) (*cgroups, error) {
	path, err := cgroupOf("self")
	if err != nil {
		return nil, err
	}
	own, err := cgroupDir(path)
	if err != nil {
		return nil, err
	}
	c := &cgroups{own: own, has: map[string]bool{}, lacks: map[string]string{}}
	prefix := "tdf-" + safe(name) + "-"
	c.stale, c.stuck = removeStale(own, path, prefix)
	if err := c.make(prefix); err != nil {
		return nil, err
	}
	c.path = filepath.Join(path, filepath.Base(c.dir))
	c.enable(sole)
	return c, nil
}

// cgroupDir finds the directory of a cgroup: version 2 may be mounted anywhere.
func cgroupDir(path string) (string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	return mountedAt(string(text), path)
}

func mountedAt(mounts, path string) (string, error) {
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(kind) == 0 || kind[0] != "cgroup2" {
			continue
		}
		below, err := filepath.Rel(unescape(fields[3]), path)
		if err == nil && filepath.IsLocal(below) && !strings.HasPrefix(path, "/../") {
			return filepath.Join(unescape(fields[4]), below), nil
		}
	}
	return "", fmt.Errorf("no file system of type cgroup2 is mounted that shows %s", path)
}

// unescape undoes how mountinfo writes blanks and the like.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// safe makes of any name one for a directory, which no other name has.
func safe(name string) string {
	const most = 60
	clean := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '.'
	}, name)
	if clean == name && len(name) <= most {
		return name
	}
	return fmt.Sprintf("%.*s.%x", most, clean, sha256.Sum256([]byte(name)))[:min(most, len(clean))+1+8]
}

// made tells the directories of one process apart.
var made atomic.Uint64

// make makes a directory that is this Host's as long as it is locked.
func (c *cgroups) make(prefix string) error {
	for {
		dir := filepath.Join(c.own, fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), made.Add(1)))
		err := os.Mkdir(dir, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		if c.lock, err = lockDir(dir); err == nil {
			c.dir = dir
			return nil
		}
		// Somebody took it for a dead one's; then it is gone, or the next try is theirs to lose.
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
}

func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// removeStale ends what is in the cgroups of a Host of that name that is no more, and removes them.
// It returns how many processes ended, and which did not. path is own as /proc/PID/cgroup names it.
func removeStale(own, path, prefix string) (ended int, stuck []proc) {
	dirs, _ := filepath.Glob(filepath.Join(own, prefix+"*-*"))
	for _, dir := range dirs {
		pid, number, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		if !isNumber(pid) || !isNumber(number) {
			continue // of a name that begins with this one
		}
		if lock, err := lockDir(dir); err == nil {
			g := &group{dir, filepath.Join(path, filepath.Base(dir))}
			there, left := g.members(), []proc(nil)
			if g.remove() != nil {
				left = g.members()
			}
			ended, stuck = ended+max(0, len(there)-len(left)), append(stuck, left...)
			_ = os.Remove(leafOf(dir))
			lock.Close()
		}
	}
	return ended, stuck
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}

// enable has programs' cgroups get the controllers, as far as possible.
func (c *cgroups) enable(sole bool) {
	offered, _ := os.ReadFile(filepath.Join(c.own, "cgroup.controllers"))
	for _, name := range controllers {
		if !strings.Contains(" "+strings.TrimSpace(string(offered))+" ", " "+name+" ") {
			c.lacks[name] = fmt.Sprintf("the cgroup %s does not have the controller %q", c.own, name)
			continue
		}
		err := c.enableOne(name, sole)
		if err != nil {
			c.lacks[name] = fmt.Sprintf("the controller %q cannot be enabled: %v", name, err)
			continue
		}
		c.has[name] = true
	}
	if len(c.enabled) == 0 {
		c.moveBack()
	}
}

func (c *cgroups) enableOne(name string, sole bool) error {
	if err := c.enableHere(name, sole); err != nil {
		return err
	}
	return writeFile(c.dir, subtree, "+"+name)
}

// enableHere enables a controller for those below the own cgroup, which only one without processes
// may do: where this process is the only one, it can move.
func (c *cgroups) enableHere(name string, sole bool) error {
	have, _ := os.ReadFile(filepath.Join(c.own, subtree))
	if strings.Contains(" "+strings.TrimSpace(string(have))+" ", " "+name+" ") {
		return nil
	}
	err := writeFile(c.own, subtree, "+"+name)
	if errors.Is(err, syscall.EBUSY) && sole {
		if err := c.move(); err != nil {
			return err
		}
		err = writeFile(c.own, subtree, "+"+name)
	}
	if err == nil {
		c.enabled = append(c.enabled, name)
	}
	return err
}

// leafOf is where this process moves to, beside its programs' cgroups.
func leafOf(dir string) string { return dir + ".worker" }

func (c *cgroups) move() error {
	if c.leaf != "" {
		return nil
	}
	leaf := leafOf(c.dir)
	if err := os.Mkdir(leaf, 0o755); err != nil {
		return err
	}
	c.leaf = leaf
	return writeFile(leaf, cgroupFile, strconv.Itoa(os.Getpid()))
}

func (c *cgroups) moveBack() {
	if c.leaf == "" {
		return
	}
	_ = writeFile(c.own, cgroupFile, strconv.Itoa(os.Getpid()))
	_ = os.Remove(c.leaf)
	c.leaf = ""
}

// close removes the directory and undoes the rest.
func (c *cgroups) close() error {
	err := (&group{c.dir, c.path}).remove()
	for _, name := range c.enabled {
		_ = writeFile(c.own, subtree, "-"+name)
	}
	c.moveBack()
	c.lock.Close()
	return err
}

func writeFile(dir, name, text string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
}
