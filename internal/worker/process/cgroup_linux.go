package process

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	cgroupFile = "cgroup.procs"
	subtree    = "cgroup.subtree_control"
)

// memoryController is the kernel's name of the cgroup controller that limits memory.
const memoryController = "memory"

// A cgroups manages the directory in which a Host makes a cgroup for each program.
type cgroups struct {
	own     string // the cgroup in which this process was started
	dir     string // the directory of the Host, below own
	path    string // the same cgroup as dir, in the form of /proc/PID/cgroup
	leaf    string // the cgroup to which this process was moved; "" if it was not moved
	lock    *os.File
	enabled bool // this Host enabled the controller in the cgroup own
	// why the cgroups of programs cannot limit memory; nil if they can
	noMemory error
	stale    int    // number of processes of an earlier Host that were ended
	stuck    []proc // processes of an earlier Host that did not end

	mu    sync.Mutex // guards the fields below
	free  []*group   // empty cgroups that programs have left
	taken []bool     // whether each number is in use in the name of a cgroup; the index of the name p1 is 0
}

// newCgroups makes the Host's directory. If sole is true ([Config].Sole), this process may move to a cgroup of its own,
// in order to make controllers available.
func newCgroups(name string, sole bool) (*cgroups, error) {
	path, err := cgroupOf("self")
	if err != nil {
		return nil, err
	}
	own, err := cgroupDir(path)
	if err != nil {
		return nil, err
	}
	c := &cgroups{own: own}
	prefix := "tdf-" + directoryName(name) + "-"
	c.stale, c.stuck = removeStale(own, path, prefix)
	if err := c.make(prefix); err != nil {
		return nil, err
	}
	c.path = filepath.Join(path, filepath.Base(c.dir))
	c.noMemory = c.enable(sole)
	return c, nil
}

// cgroupDir returns the directory of a cgroup. It searches the mounts, because the file system cgroup2 may be mounted
// anywhere.
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
	return "", fmt.Errorf("no mounted file system of type cgroup2 contains %s", path)
}

// unescape decodes the escapes of mountinfo, such as \040 for a blank.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// directoryName converts any name to the name of a directory. Different names give different directories.
func directoryName(name string) string {
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

// madeDirectories counts the directories that this process has made. The count is a part of their names.
var madeDirectories atomic.Uint64

// make makes the directory of this Host. The Host holds a lock on the directory until the Host is closed.
func (c *cgroups) make(prefix string) error {
	for {
		dir := filepath.Join(c.own, fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), madeDirectories.Add(1)))
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
		// Another Host has locked the new directory, because it assumed that the directory's owner was dead. That Host
		// or this one removes the directory. Then this Host tries the next number.
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

// removeStale ends the processes in the cgroups of dead Hosts with this name, and removes the cgroups. It returns how
// many processes ended, and which processes did not end. The arguments own and path name the same cgroup: own is its
// directory, and path is its form in /proc/PID/cgroup.
func removeStale(own, path, prefix string) (ended int, stuck []proc) {
	dirs, _ := filepath.Glob(filepath.Join(own, prefix+"*-*"))
	for _, dir := range dirs {
		pid, number, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		if !isNumber(pid) || !isNumber(number) {
			continue // the directory belongs to another Host: its name only begins with the same text
		}
		if lock, err := lockDir(dir); err == nil {
			g := &group{dir: dir, path: filepath.Join(path, filepath.Base(dir))}
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

// enable lets the cgroups of programs limit memory.
func (c *cgroups) enable(sole bool) error {
	offered, _ := os.ReadFile(filepath.Join(c.own, "cgroup.controllers"))
	if !hasMemory(offered) {
		return fmt.Errorf("the cgroup %s does not have the controller %q", c.own, memoryController)
	}
	err := c.enableHere(sole)
	if err == nil {
		err = writeFile(c.dir, subtree, "+"+memoryController)
	}
	if !c.enabled {
		c.moveBack()
	}
	if err != nil {
		return fmt.Errorf("the controller %q cannot be enabled: %w", memoryController, err)
	}
	return nil
}

func hasMemory(controllers []byte) bool {
	return slices.Contains(strings.Fields(string(controllers)), memoryController)
}

// enableHere enables the controller for the cgroups below the cgroup own. The kernel allows that only if own has no
// processes. So if sole is true, this process first moves to another cgroup.
func (c *cgroups) enableHere(sole bool) error {
	have, _ := os.ReadFile(filepath.Join(c.own, subtree))
	if hasMemory(have) {
		return nil
	}
	err := writeFile(c.own, subtree, "+"+memoryController)
	if errors.Is(err, syscall.EBUSY) && sole {
		if err := c.move(); err != nil {
			return err
		}
		err = writeFile(c.own, subtree, "+"+memoryController)
	}
	c.enabled = err == nil
	return err
}

// leafOf returns the cgroup to which this process moves. It is beside the Host's directory dir.
func leafOf(dir string) string { return dir + ".worker" }

func (c *cgroups) move() error {
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

// close removes the directory, disables the controller if this Host enabled it, and moves this process back.
func (c *cgroups) close() error {
	for _, g := range c.free {
		g.close()
	}
	err := (&group{dir: c.dir, path: c.path}).remove()
	if c.enabled {
		_ = writeFile(c.own, subtree, "-"+memoryController)
	}
	c.moveBack()
	c.lock.Close()
	return err
}

func writeFile(dir, name, text string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
}
