package cmd_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// ordinary returns process attributes that make a command run as an unprivileged user. It returns nil if the test itself is
// unprivileged.
func ordinary(t *testing.T) *syscall.SysProcAttr {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skip(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

// A process cannot read the environment of a tdf-server or tdf-worker of the same user. The environment may contain a
// password.
func TestEnvironmentIsHidden(t *testing.T) {
	dir, err := os.MkdirTemp("", "tdf-hidden-*") // not t.TempDir, because other users cannot enter it
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	file := filepath.Join(dir, "a.cfg")
	must(t, os.WriteFile(file, []byte("[tdf]\nnamespace=x\n[redis]\nhost=127.0.0.1\nport=1\n"), 0o644)) // no Redis listens on port 1
	for _, command := range []string{"tdf-server", "tdf-worker"} {
		cmd := exec.Command(built(t, command), "name", file)
		must(t, os.Chmod(bin, 0o755))
		p := launch(t, cmd, append(environment(), "TDF_CFG_REDIS_PASSWORD=hunter2"), ordinary(t))
		p.logs("redis")
		read := exec.Command("cat", fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid))
		read.SysProcAttr = ordinary(t)
		out, err := read.CombinedOutput()
		expect.Fails(t, err, "", command)
		expect.NotContains(t, string(out), "hunter2", command)
	}
}
