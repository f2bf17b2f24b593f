package process

import (
	"errors"
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

func TestAForkBombIsEnded(t *testing.T) {
	nobody, ok := anotherUser()
	if !ok {
		t.Skip("only root can run it as a user of its own, whom a limit on processes bounds")
	}
	for _, cgroups := range []bool{true, false} {
		s := newSite(t, cgroups, Config{User: nobody.Username})
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
			s := newSite(t, cgroups, Config{User: name})
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
		expect.Equal(t, flag(Config{User: nobody.Username}), "NoNewPrivs:\t1\n", "another user")
		expect.Equal(t, flag(Config{}), own, "this user")
	}
}

func TestUnavailable(t *testing.T) {
	for name, c := range map[string]struct {
		cfg       Config
		key, want string
	}{
		"memory":       {Config{Memory: 1}, "memory", "the limit needs a cgroup (v2) of this process, such as a systemd unit with Delegate=yes has: switched off"},
		"unknown user": {Config{User: "no-such-user"}, "user", `user "no-such-user": there is no such user on this machine`},
		"unknown id":   {Config{User: "4000000000"}, "user", `user "4000000000": there is no such user on this machine`},
	} {
		t.Run(name, func(t *testing.T) {
			before := descriptors(t)
			_, err := newHost(c.cfg, false)
			expect.Fails(t, err, c.want)
			var wrong *ConfigError
			expect.MustTrue(t, errors.As(err, &wrong), err)
			expect.Equal(t, wrong.Key, c.key)
			after := descriptors(t)
			expect.True(t, len(after) <= len(before), "descriptors", after, "and before", before)
		})
	}
}

func TestIsolation(t *testing.T) {
	reached, missing := newSite(t, false, Config{}).host.Isolation()
	expect.Equal(t, strings.Join(reached, ", "), "subreaper")
	expect.Equal(t, missing, "cgroup: switched off")
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
		measured := s.host.cgroups != nil && s.host.cgroups.noMemory == nil
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

// The file Kept of a command is open in the program.
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

// A program of the worker's own user cannot read the worker's environment and memory. The search for processes and
// measuring still work.
func TestProgramsCannotReadTheWorker(t *testing.T) {
	const script = `for file in environ maps; do head -c 1 /proc/$PPID/$file >/dev/null 2>&1 && echo "$file can be read"; done
		tr '\0' '\n' </proc/$$/environ | grep -c ^TDF_DIR=
		setsid sh -c '(sleep 1000 &)'`
	cmd := exec.Command("/proc/self/exe", script)
	cmd.Env = []string{"TDF_TEST_PROGRAM=host", "REDIS_PASSWORD=hunter2", "PATH=" + os.Getenv("PATH")}
	asNobody(t, cmd)
	out, err := cmd.CombinedOutput()
	want := "1\nexit 0 lingered 1\n"
	expect.NoError(t, err)
	expect.Equal(t, string(out), want)
}
