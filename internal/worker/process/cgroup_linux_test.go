package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestSafeNames(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"worker-1", "worker.1", "worker/1", "worker 1", "..", ".", "", "a", strings.Repeat("x", 300), strings.Repeat("x", 301), "ä", "ö", "a\x00b", "worker_1"} {
		dir := directoryName(name)
		other, ok := seen[dir]
		expect.True(t, !ok, name, "and", other, "are both", dir)
		seen[dir] = name
		expect.Compare(t, len(dir), "<=", 80, name, dir)
		expect.True(t, !strings.ContainsAny(dir, "/-\x00"), name, dir)
	}
}

func TestCostsInACgroup(t *testing.T) {
	g := &group{dir: t.TempDir()}
	for name, text := range map[string]string{
		"cpu.stat": "usage_usec 1500000\nuser_usec 1\n", "memory.peak": "123456\n",
		"memory.events": "low 0\noom 2\noom_kill 3\noom_group_kill 1\n",
	} {
		write(t, filepath.Join(g.dir, name), text)
	}
	for limit, want := range map[int64]string{1000: "more than 1000 bytes of memory (memory)", 0: "ran out of memory"} {
		p := &Process{host: &Host{cfg: Config{Memory: limit}}}
		p.group = g
		p.settle()
		e := p.Ended()
		expect.Equal(t, e.CPU, 1500e6)
		expect.Equal(t, e.MaxRSS, 123456)
		expect.Contains(t, e.OutOfMemory, want)
	}
	write(t, filepath.Join(g.dir, "memory.events"), "oom_kill 0\n")
	p := &Process{host: &Host{}}
	p.group = g
	p.settle()
	expect.Equal(t, p.Ended().OutOfMemory, "", "got", p.Ended())
}

func TestLimitOfACgroup(t *testing.T) {
	g := &group{dir: t.TempDir()}
	must(t, g.limit(1<<20))
	for name, want := range map[string]string{"memory.max": "1048576", "memory.swap.max": "0", "memory.oom.group": "1"} {
		expect.Equal(t, string(expect.Result(os.ReadFile(filepath.Join(g.dir, name))).Value(t)), want, name)
	}
}

// A Host ends the processes of a killed Host with the same name. It ends no processes of other Hosts.
func TestStaleCgroups(t *testing.T) {
	name := fmt.Sprint("stale", os.Getpid()) // unique, because these tests may run twice at the same time
	c, err := newCgroups(name, false)
	if err != nil {
		t.Skip("no cgroup v2 on this machine: ", err)
	}
	g := expect.Result(c.newGroup(0)).Value(t)
	cmd, _ := foreignChild(t, "exec sleep 1000")
	must(t, writeFile(g.dir, cgroupFile, strconv.Itoa(cmd.Process.Pid)))
	again := func(name string) {
		expect.NoError(t, expect.Result(newCgroups(name, false)).Value(t).close())
	}
	again(name)
	pr := expect.Result(look(cmd.Process.Pid)).Value(t)
	expect.MustTrue(t, pr.alive(), "a process of a living Host was ended")
	c.lock.Close() // a Host loses this lock when its process ends
	again(name[:len(name)-1])
	again(name + "-1")
	if pr, err := look(cmd.Process.Pid); err != nil || !pr.alive() {
		t.Fatal("a process of a Host with another name was ended")
	}
	go cmd.Wait()
	again(name)
	if _, err := os.Stat(c.dir); !os.IsNotExist(err) {
		t.Errorf("the cgroup remains: %v", err)
	}
	until(t, "its process is gone", func() bool { return gone(cmd.Process.Pid) })
}

// Before Linux 5.14, the processes of a cgroup are killed one by one. When the signal is sent, a listed PID may already
// belong to a process of another cgroup. Such a process gets no signal.
func TestOnlyItsOwnProcessesAreKilledOneByOne(t *testing.T) {
	path, err := cgroupOf("self")
	if err != nil {
		t.Skip("no cgroup v2 on this machine: ", err)
	}
	for name, c := range map[string]struct {
		path  string
		kills bool
	}{"its own": {path, true}, "another's": {filepath.Join(path, "tdf-not-there"), false}} {
		t.Run(name, func(t *testing.T) {
			cmd, _ := foreignChild(t, "exec sleep 1000")
			ended := make(chan struct{})
			go func() { _ = cmd.Wait(); close(ended) }()
			g := &group{dir: t.TempDir(), path: c.path} // this directory lacks the file cgroup.kill
			write(t, filepath.Join(g.dir, "cgroup.events"), "populated 1\n")
			write(t, filepath.Join(g.dir, cgroupFile), strconv.Itoa(cmd.Process.Pid))
			expect.Fails(t, g.remove(), "", "the group was removed although it has files")
			pr, err := look(cmd.Process.Pid)
			expect.Equal(t, err != nil || !pr.alive(), c.kills, "killed")
			_ = cmd.Process.Kill()
			<-ended
		})
	}
}

// A program may make cgroups below its own cgroup. The processes in them end with the program.
func TestCgroupsBelow(t *testing.T) {
	s := newSite(t, true, Config{})
	if s.host.cgroups == nil {
		t.Skip("no cgroup v2 on this machine: ", s.host.noGroup)
	}
	r := s.start(Command{Path: "/bin/sh", Env: []string{"CG=" + s.host.cgroups.dir}, Args: []string{"-c", `
		dir=$CG/$(sed -n 's,^0::.*/,,p' /proc/self/cgroup)
		mkdir -p "$dir/a/b"
		setsid sleep 1000 & echo $! >"$dir/a/b/cgroup.procs"
		echo $!; exec sleep 1000`}})
	below := pid(t, r.awaitLines(1)[0])
	expect.Equal(t, len(r.group.members()), 2, "processes are seen")
	r.end()
	expect.True(t, gone(below), "the process in the cgroup below remains")
}

func TestCgroupsAreFoundWhereverTheyAreMounted(t *testing.T) {
	const v1 = "36 31 0:33 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
	const mount = "41 31 0:38 %s %s rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
	for _, c := range []struct{ root, at, path, want string }{
		{"/", "/sys/fs/cgroup", "/", "/sys/fs/cgroup"},
		{"/", "/sys/fs/cgroup/unified", "/a.slice/b", "/sys/fs/cgroup/unified/a.slice/b"},
		{"/", `/a\040b`, "/c", "/a b/c"},
		{"/docker/1", "/sys/fs/cgroup", "/docker/1", "/sys/fs/cgroup"},
		{"/docker/1", "/sys/fs/cgroup", "/docker/1/x", "/sys/fs/cgroup/x"},
		{"/docker/1", "/sys/fs/cgroup", "/docker/2", ""}, // not shown
		{"/", "/sys/fs/cgroup", "/../x", ""},             // outside of the root that this process sees
	} {
		got, err := mountedAt(v1+fmt.Sprintf(mount, c.root, c.at), c.path)
		expect.Equal(t, got, c.want)
		expect.Equal(t, err != nil, c.want == "")
	}
	expect.Result(mountedAt(v1, "/")).Fails(t, "", "version 1 only")
}

func TestMemoryIsEnabledWhereItIs(t *testing.T) {
	for name, c := range map[string]struct{ offered, have, want string }{
		"offered": {"cpu memory io\n", "cpu\n", "+memory"},
		"enabled": {"cpu memory io\n", "cpu memory\n", "cpu memory\n"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newTree(t, c.offered, c.have)
			must(t, g.enable(false))
			expect.Equal(t, string(expect.Result(os.ReadFile(filepath.Join(g.own, subtree))).Value(t)), c.want)
			expect.Equal(t, string(expect.Result(os.ReadFile(filepath.Join(g.dir, subtree))).Value(t)), "+memory")
			expect.Equal(t, g.enabled, name == "offered")
		})
	}
	expect.Fails(t, newTree(t, "cpu memory2\n", "").enable(false), `does not have the controller "memory"`)
}

// A program of the worker's user may write limits into its cgroup. These limits do not hold for the next program.
func TestLimitsOfAnEarlierProgram(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		reused bool
	}{
		"none":        {"", true},
		"descendants": {`echo 0 >"$dir/cgroup.max.descendants"`, false},
		"depth":       {`echo 3 >"$dir/cgroup.max.depth"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, true, Config{})
			if s.host.cgroups == nil || s.host.cgroups.noMemory == nil {
				t.Skip("no cgroup is used again on this machine: ", s.host.noGroup)
			}
			run := func(script string) (inode, limits string) {
				r := s.start(Command{Path: "/bin/sh", Env: []string{"CG=" + s.host.cgroups.dir}, Args: []string{"-c", `
					dir=$CG/$(sed -n 's,^0::.*/,,p' /proc/self/cgroup)
					stat -c %i "$dir"; cat "$dir/cgroup.max.descendants" "$dir/cgroup.max.depth"
					` + script}})
				r.wait()
				inode, limits, _ = strings.Cut(r.printed(), "\n")
				return inode, limits
			}
			before, made := run(c.script)
			after, limits := run("")
			expect.Equal(t, after == before, c.reused, "the same cgroup")
			expect.Equal(t, made, "max\nmax\n", limits)
			expect.Equal(t, limits, made)
		})
	}
}

// Ordinary files replace the files of the kernel here, because many machines have no controllers for tests.
func TestChangedLimitsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		want       bool
	}{
		"as made":          {"cgroup.type", "domain\n", true},
		"type":             {"cgroup.type", "domain threaded\n", false},
		"controllers":      {subtree, "pids\n", false},
		"more controllers": {"../" + subtree, "cpu pids\n", false},
	} {
		g := &group{dir: filepath.Join(t.TempDir(), "p1")}
		must(t, os.Mkdir(g.dir, 0o755))
		for file, text := range map[string]string{
			"cgroup.max.descendants": "max\n", "cgroup.max.depth": "max\n", "cgroup.type": "domain\n",
			subtree: "", "../" + subtree: "", c.file: c.text,
		} {
			write(t, filepath.Join(g.dir, file), text)
		}
		expect.Equal(t, g.isUnlimited(), c.want, name)
	}
}

// newTree returns cgroups in ordinary files, because many machines have no controller for tests.
func newTree(t *testing.T, offered, have string) *cgroups {
	t.Helper()
	own := t.TempDir()
	c := &cgroups{own: own, dir: filepath.Join(own, "tdf")}
	must(t, os.Mkdir(c.dir, 0o755))
	write(t, filepath.Join(own, "cgroup.controllers"), offered)
	write(t, filepath.Join(own, subtree), have)
	return c
}
