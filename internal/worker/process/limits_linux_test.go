package process

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestLimitsHoldFromTheFirstInstruction(t *testing.T) {
	s := newSite(t, false, Config{Limits: Limits{Memory: 1 << 40, Processes: 999}})
	r := s.program("limits")
	ended := r.wait()
	expect.Equal(t, r.printed(), fmt.Sprintf("%d %d\n999 999\n", 1<<40, 1<<40))
	expect.Equal(t, ended.Exit, "0")
}

// Without a cgroup, a program at its memory limit is not killed: its allocation fails.
func TestMemory(t *testing.T) {
	s := newSite(t, false, Config{Limits: Limits{Memory: 200 << 20}})
	r := s.sh(`x=$(head -c 300000000 /dev/zero | tr '\0' x); echo ${#x}`)
	expect.NotEqual(t, r.wait().Exit, "0")
	expect.NotContains(t, r.printed(), "300000000")
	r = s.sh("echo ok")
	expect.Equal(t, r.wait().Exit, "0", "a small program fails", r.printed())
}

func TestAForkBombIsEnded(t *testing.T) {
	nobody, ok := anotherUser()
	if !ok {
		t.Skip("only root can run it as a user of its own, whom a limit on processes bounds")
	}
	for _, cgroups := range []bool{true, false} {
		s := newSite(t, cgroups, Config{Limits: Limits{Processes: 30}, User: nobody.Username, Require: []string{Processes, User}})
		if err := os.Chmod("/proc/self/exe", 0o755); err != nil { // other users may have no right to execute the test binary
			t.Fatal(err)
		}
		r := s.program("bomb")
		r.awaitLines(1)
		expect.Equal(t, r.end().Exit, "signal: killed", r.printed())
	}
}

func anotherUser() (*user.User, bool) {
	u, err := user.Lookup("nobody")
	return u, err == nil && os.Geteuid() == 0
}

func TestUser(t *testing.T) {
	nobody, ok := anotherUser()
	if !ok {
		t.Skip("only root can run programs as another user")
	}
	for _, name := range []string{nobody.Username, nobody.Uid} {
		for _, cgroups := range []bool{true, false} {
			s := newSite(t, cgroups, Config{User: name, Require: []string{User}})
			r := s.sh(`id -u; id -g; id -G; echo >mine; grep CapEff /proc/self/status; (setsid sleep 1000 &)`)
			ended := r.wait()
			want := fmt.Sprintf("%s\n%s\n%s\nCapEff:\t0000000000000000\n", nobody.Uid, nobody.Gid, nobody.Gid)
			expect.Equal(t, r.printed(), want)
			expect.Equal(t, ended.Exit, "0")
			c := s.host.Credential(1)
			expect.Equal(t, fmt.Sprint(c.Uid), nobody.Uid)
			expect.Equal(t, fmt.Sprint(c.Gid), nobody.Gid)
			expect.Equal(t, strings.Join(s.host.UserEnv(1), " "), "HOME="+nobody.HomeDir+" USER=nobody LOGNAME=nobody", "environment")
		}
	}
}

// A program of another user gains no rights by setuid files. Other programs of this process can.
func TestUserGainsNoPrivileges(t *testing.T) {
	nobody, ok := anotherUser()
	if !ok {
		t.Skip("only root can run programs as another user")
	}
	flag := func(cfg Config) string {
		r := newSite(t, false, cfg).sh(`grep NoNewPrivs /proc/self/status`)
		r.wait()
		return r.printed()
	}
	own := flag(Config{})
	for range 3 {
		for _, limits := range []Limits{{}, {Memory: 1 << 40}} {
			expect.Equal(t, flag(Config{User: nobody.Username, Limits: limits}), "NoNewPrivs:\t1\n", "another user", limits)
			expect.Equal(t, flag(Config{Limits: limits}), own, "this user")
		}
	}
}

func TestRequire(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"unknown":      {Config{Require: []string{"gpu"}}, `unknown kind "gpu"; want one of subreaper, cgroup,`},
		"no cgroup":    {Config{Require: []string{Subreaper, Cgroup}}, "cgroup (switched off)"},
		"not set":      {Config{Require: []string{Memory, Processes}}, "memory (none is set); processes (none is set)"},
		"unknown user": {Config{User: "no-such-user"}, `user "no-such-user": there is no such user on this machine`},
		"unknown id":   {Config{User: "4000000000"}, `user "4000000000": there is no such user on this machine`},
		"same user":    {Config{User: fmt.Sprint(os.Geteuid()), Require: []string{User}}, "user (the worker itself runs as"},
	} {
		t.Run(name, func(t *testing.T) {
			before := descriptors(t)
			h, err := newHost(c.cfg, false)
			expect.Fails(t, err, c.want, h)
			after := descriptors(t)
			expect.True(t, len(after) <= len(before), "descriptors", after, "and before", before)
		})
	}
	if os.Geteuid() == 0 {
		h, err := newHost(Config{Limits: Limits{Processes: 10}, Require: []string{Processes}}, false)
		expect.Fails(t, err, "processes (only a cgroup can limit the processes of root, and there is no cgroup; set user)", "processes of root", h)
	}
}

func TestIsolation(t *testing.T) {
	s := newSite(t, false, Config{Limits: Limits{Memory: 1 << 40}})
	expect.Equal(t, strings.Join(s.host.Isolation(), ", "), "subreaper, memory (of each process)")
	got := s.host.Missing()
	expect.Equal(t, got[Cgroup], "switched off")
	expect.Equal(t, got[Processes], "none is set")
	expect.Len(t, got, 3)
}

// The peak memory that Linux reports for a program includes the peak of its parent process. So the number may be larger
// than the program's own peak.
func TestThePeakIsTheProgramsOwn(t *testing.T) {
	const big = 64 << 20
	ballast := make([]byte, big)
	for i := 0; i < len(ballast); i += 1 << 10 {
		ballast[i] = 1
	}
	runtime.KeepAlive(ballast)
	bothWays(t, func(t *testing.T, s *site) {
		measured := s.host.cgroups != nil && s.host.cgroups.has["memory"]
		got := s.sh("true").wait().MaxRSS
		expect.Compare(t, got, "<", big)
		if !measured {
			expect.Equal(t, got, 0)
		}
		mib := int(ownPeak()>>20) + 200
		if got := s.sh(fmt.Sprintf("dd if=/dev/zero of=/dev/null bs=%dM count=1", mib)).wait().MaxRSS >> 20; got < int64(mib) || got > int64(mib)+100 {
			t.Errorf("a program with %d MiB had %d MiB", mib, got)
		}
	})
}

// The file Kept of a command is open in the program, with limits and without.
func TestKeptFileIsOpenInTheProgram(t *testing.T) {
	bothWays(t, func(t *testing.T, s *site) {
		f := expect.Result(os.Create(filepath.Join(t.TempDir(), "lock"))).Value(t)
		defer f.Close()
		r := s.start(Command{Path: "/bin/sh", Args: []string{"-c", "readlink /proc/self/fd/99"}, Kept: f})
		r.wait()
		expect.Equal(t, r.printed(), f.Name()+"\n", "descriptor", KeptDescriptor, "of the program")
	})
}

// asNobody makes a command run as an ordinary user, because root can read the memory of all processes.
func asNobody(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	nobody, ok := anotherUser()
	if !ok {
		t.Skip("there is no user nobody")
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	gid, _ := strconv.Atoi(nobody.Gid)
	must(t, os.Chmod("/proc/self/exe", 0o755))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	cmd.Dir = "/"
}

// A program of the worker's own user cannot read the worker's environment and memory. Limits, the search for
// processes, and measuring still work.
func TestProgramsCannotReadTheWorker(t *testing.T) {
	const script = `for file in environ maps; do head -c 1 /proc/$PPID/$file >/dev/null 2>&1 && echo "$file can be read"; done
		tr '\0' '\n' </proc/$$/environ | grep -c ^TDF_DIR=
		ulimit -v
		setsid sh -c '(sleep 1000 &)'`
	cmd := exec.Command("/proc/self/exe", script)
	cmd.Env = []string{"TDF_TEST_PROGRAM=host", "REDIS_PASSWORD=hunter2", "PATH=" + os.Getenv("PATH")}
	asNobody(t, cmd)
	out, err := cmd.CombinedOutput()
	want := "1\n1073741824\nexit 0 lingered 1\n"
	expect.NoError(t, err)
	expect.Equal(t, string(out), want)
}
