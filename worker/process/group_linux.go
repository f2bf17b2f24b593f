package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A group is the cgroup of one program, or the cgroup of a Host, which contains the cgroups of its programs.
type group struct {
	dir  string
	path string // the same cgroup as dir, in the form of /proc/PID/cgroup
}

// newGroup makes an empty cgroup with the limits in l that a cgroup can enforce.
func (c *cgroups) newGroup(l Limits) (*group, error) {
	name := "p" + strconv.FormatUint(c.count.Add(1), 10)
	g := &group{filepath.Join(c.dir, name), filepath.Join(c.path, name)}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("the program's cgroup: %w", err)
	}
	if err := g.limit(c.has, l); err != nil {
		_ = os.Remove(g.dir)
		return nil, fmt.Errorf("limits of the program's cgroup: %w", err)
	}
	return g, nil
}

func (g *group) limit(has map[string]bool, l Limits) error {
	if has["pids"] && l.Processes > 0 {
		if err := writeFile(g.dir, "pids.max", strconv.Itoa(l.Processes)); err != nil {
			return err
		}
	}
	if !has["memory"] || l.Memory == 0 {
		return nil
	}
	if err := writeFile(g.dir, "memory.max", strconv.FormatInt(l.Memory, 10)); err != nil {
		return err
	}
	for name, value := range map[string]string{"memory.swap.max": "0", "memory.oom.group": "1"} {
		if err := writeFile(g.dir, name, value); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err // the file is missing if the kernel is old or has no swap
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
	n, ok := g.number("cgroup.events", "populated")
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
	_, err = f.WriteString("1")
	return err
}

// The kernel may take removeTries times removePause to release a cgroup.
const (
	removeTries = 200
	removePause = 5 * time.Millisecond
)

// remove kills the processes in the cgroup. Then it removes the cgroup with all cgroups below it.
func (g *group) remove() error {
	var err error
	for range removeTries {
		if g.populated() && g.kill() != nil {
			for _, pr := range g.members() { // not by PID alone: another process may have the PID by now
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

func (g *group) removeTree() error {
	for _, dir := range g.tree() {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// number reads a number from a file of the cgroup. If field is "", the file contains only this number. Otherwise the
// number is in the line that begins with field.
func (g *group) number(file, field string) (int64, bool) {
	text, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if field == "" {
			value = name
		} else if name != field {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// holds reports whether a process is in the cgroup.
func (g *group) holds(pid int) bool {
	path, err := cgroupOf(strconv.Itoa(pid))
	return err == nil && (path == g.path || strings.HasPrefix(path, g.path+"/"))
}
