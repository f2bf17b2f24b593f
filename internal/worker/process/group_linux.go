package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A group is the cgroup of one program, or the cgroup of a Host, which contains the cgroups of its programs.
type group struct {
	dir  string
	path string // the same cgroup as dir, in the form of /proc/PID/cgroup

	open   *os.File    // the directory; nil unless a program may start in the cgroup
	used   bool        // an earlier program was in the cgroup
	killed atomic.Bool // cgroup.kill was used
	number int         // index in cgroups.taken

	// CPU time that programs in the cgroup used, in microseconds: before the present program, and up to its end
	before, after int64
}

// newGroup makes an empty cgroup with a limit of memory, unless the limit is 0 or cannot be enforced.
func (c *cgroups) newGroup(memory int64) (*group, error) {
	g, err := c.mkdir()
	if err != nil {
		return nil, fmt.Errorf("the program's cgroup: %w", err)
	}
	if memory > 0 && c.noMemory == nil {
		err = g.limit(memory)
	}
	if err == nil {
		g.open, err = os.Open(g.dir)
	}
	if err != nil {
		_ = c.remove(g)
		return nil, err
	}
	return g, nil
}

// mkdir makes a cgroup under the first free name.
func (c *cgroups) mkdir() (*group, error) {
	for {
		n := c.takeNumber()
		name := "p" + strconv.Itoa(n+1)
		g := &group{dir: filepath.Join(c.dir, name), path: filepath.Join(c.path, name), number: n}
		err := os.Mkdir(g.dir, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue // an earlier program's cgroup of this name could not be removed
		}
		if err != nil {
			c.freeNumber(n)
		}
		return g, err
	}
}

func (c *cgroups) takeNumber() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := slices.Index(c.taken, false)
	if n < 0 {
		n, c.taken = len(c.taken), append(c.taken, false)
	}
	c.taken[n] = true
	return n
}

func (c *cgroups) freeNumber(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken[n] = false
}

// remove removes the cgroup of a program.
func (c *cgroups) remove(g *group) error {
	if err := g.remove(); err != nil {
		return err
	}
	c.freeNumber(g.number)
	return nil
}

// take returns an empty cgroup for a program: one that earlier programs have left, or a new one.
func (c *cgroups) take(memory int64) (*group, error) {
	if g := c.takeFree(); g != nil {
		return g, nil
	}
	return c.newGroup(memory)
}

// takeFree returns a cgroup that earlier programs have left, or nil.
func (c *cgroups) takeFree() *group {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.free)
	if n == 0 {
		return nil
	}
	g := c.free[n-1]
	c.free = c.free[:n-1]
	return g
}

// put takes back the cgroup of a program that has ended. It removes the cgroup unless another program can use it.
//
// With the controller memory, no other program can use the cgroup. The pages of the ended program, such as files in
// /dev/shm, still count, and so does its peak. After a use of cgroup.kill, no other program can use the cgroup either.
// Some versions of Linux kill each program that starts in this cgroup: clone3 compares the cgroup's number of kills
// with the number of another cgroup.
func (c *cgroups) put(g *group) error {
	if c.noMemory == nil || g.killed.Load() || !g.asMade() || !g.isUnlimited() {
		return c.remove(g)
	}
	g.used, g.before = true, g.after
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, g)
	return nil
}

// asMade reports whether the cgroup is like a new one: it has no process and no cgroup below it, and it is not frozen.
func (g *group) asMade() bool {
	events, err := g.read("cgroup.events")
	if err != nil || !bytes.Contains(events, []byte("populated 0\n")) || bytes.Contains(events, []byte("frozen 1\n")) {
		return false
	}
	var info unix.Stat_t
	return g.open != nil && unix.Fstat(int(g.open.Fd()), &info) == nil && info.Nlink == 2
}

// isUnlimited reports whether no limit of a program would hold for the next one. A program that runs as the worker's
// user can limit its cgroup, and can make controllers available in it.
func (g *group) isUnlimited() bool {
	for file, want := range map[string]string{
		"cgroup.max.descendants": "max\n", "cgroup.max.depth": "max\n", "cgroup.type": "domain\n",
		subtree: "", "../" + subtree: "",
	} {
		if text, err := g.read(file); err != nil || string(text) != want {
			return false
		}
	}
	return true
}

// limit limits the memory of the cgroup.
func (g *group) limit(memory int64) error {
	if err := writeFile(g.dir, "memory.max", strconv.FormatInt(memory, 10)); err != nil {
		return err
	}
	// A missing file is no error: the kernel is old or has no swap.
	for name, value := range map[string]string{"memory.swap.max": "0", "memory.oom.group": "1"} {
		if err := writeFile(g.dir, name, value); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// pids returns the PIDs of the processes in the cgroup, and in cgroups that the program made below it.
func (g *group) pids() []int {
	var all []int
	for _, dir := range g.tree() {
		text, _ := os.ReadFile(filepath.Join(dir, cgroupFile))
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
				all = append(all, pid)
			}
		}
	}
	return all
}

// tree returns the directory and all directories below it, children before their parents.
func (g *group) tree() []string {
	var dirs []string
	var walk func(dir string)
	walk = func(dir string) {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if e.IsDir() {
				walk(filepath.Join(dir, e.Name()))
			}
		}
		dirs = append(dirs, dir)
	}
	walk(g.dir)
	return dirs
}

// members returns the living processes of the cgroup. It skips PIDs that other processes have by now.
func (g *group) members() []proc {
	var all []proc
	for _, pid := range g.pids() {
		pr, err := look(pid)
		if err != nil {
			continue
		}
		if g.holds(pid) && pr.alive() {
			all = append(all, pr)
		}
	}
	return all
}

// populated reports whether there is a process in the cgroup, or in a cgroup below it.
func (g *group) populated() bool {
	n, ok := g.value("cgroup.events", "populated")
	return ok && n != 0
}

// kill kills all processes of the cgroup at once, including processes that they fork in the meantime. It needs Linux
// 5.14.
func (g *group) kill() error {
	f, err := os.OpenFile(filepath.Join(g.dir, "cgroup.kill"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	g.killed.Store(true)
	_, err = f.WriteString("1")
	return err
}

// The kernel needs some time to release a cgroup. So remove tries removeTries times, with pauses of removePause.
const (
	removeTries = 200
	removePause = 5 * time.Millisecond
)

// remove kills the processes in the cgroup. Then it removes the cgroup with all cgroups below it.
func (g *group) remove() error {
	defer g.close()
	var err error
	for range removeTries {
		if g.populated() && g.kill() != nil {
			for _, pr := range g.members() { // signal checks that the PID still belongs to the same process
				_ = pr.signal(syscall.SIGKILL)
			}
		}
		if err = g.removeTree(); err == nil {
			return nil
		}
		time.Sleep(removePause)
	}
	return fmt.Errorf("remove a cgroup: %w", err)
}

func (g *group) close() {
	if g.open != nil {
		g.open.Close()
	}
}

func (g *group) removeTree() error {
	for _, dir := range g.tree() {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// value reads a number from a file of the cgroup. If field is "", the file contains only this number. Otherwise the
// number is in the line that begins with field.
func (g *group) value(file, field string) (int64, bool) {
	text, err := g.read(file)
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		if field == "" {
			value = name
		} else if string(name) != field {
			continue
		}
		n, err := strconv.ParseInt(string(value), 10, 64)
		return n, err == nil
	}
	return 0, false
}

// read returns the content of a small file of the cgroup.
func (g *group) read(file string) ([]byte, error) {
	buf := make([]byte, 4<<10)
	n, err := readAt(unix.AT_FDCWD, filepath.Join(g.dir, file), buf)
	return buf[:max(n, 0)], err
}

// holds reports whether a process is in the cgroup.
func (g *group) holds(pid int) bool {
	path, err := cgroupOf(strconv.Itoa(pid))
	return err == nil && (path == g.path || strings.HasPrefix(path, g.path+"/"))
}
