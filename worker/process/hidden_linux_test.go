package process

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

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
		ulimit -n
		setsid sh -c '(sleep 1000 &)'`
	cmd := exec.Command("/proc/self/exe", script)
	cmd.Env = []string{"TDF_TEST_PROGRAM=host", "REDIS_PASSWORD=hunter2", "PATH=" + os.Getenv("PATH")}
	asNobody(t, cmd)
	out, err := cmd.CombinedOutput()
	if want := "1\n77\nexit 0 lingered 1\n"; err != nil || string(out) != want {
		t.Errorf("%v; printed %q, want %q", err, strings.TrimSpace(string(out)), want)
	}
}
