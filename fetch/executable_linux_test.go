package fetch

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/expect"
)

// openDir creates a directory that every user can enter. Only the owner can enter a directory of t.TempDir.
func openDir(t *testing.T) string {
	t.Helper()
	dir := expect.Result(os.MkdirTemp("", "tdf-test-")).Value(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	return dir
}

// asNobody calls f as an unprivileged user. As root, the test would prove nothing, because root may execute every file
// that any user may execute.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, so that the thread ends with this goroutine
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			t.Error(errno)
			return
		}
		f()
	}()
	<-done
}

// A fetch makes run.sh executable for the programs' user.
func TestRunScriptIsMadeExecutable(t *testing.T) {
	for name, c := range map[string]struct{ before, ours, others os.FileMode }{
		"not executable":           {0o640, 0o755, 0o755},
		"by everyone":              {0o755, 0o755, 0o755},
		"by the owner":             {0o744, 0o744, 0o755},
		"not by the owner":         {0o654, 0o755, 0o755},
		"private":                  {0o700, 0o700, 0o700},
		"only by others":           {0o645, 0o755, 0o755},
		"readable by the owner":    {0o610, 0o710, 0o710},
		"not readable by everyone": {0o641, 0o751, 0o751},
	} {
		t.Run(name, func(t *testing.T) {
			for other, want := range map[bool]os.FileMode{false: c.ours, true: c.others} {
				script := write(t, filepath.Join(openDir(t), runScript), []byte(goodScript))
				must(t, os.Chmod(script, c.before))
				if os.Geteuid() == 0 {
					must(t, os.Chown(script, nobody, -1))
				}
				j := &job{}
				if other {
					j.User = &User{}
				}
				asNobody(t, func() {
					err := j.ensureExecutable(script, c.before)
					expect.True(t, err == nil, err)
				})
				expect.Equal(t, expect.Result(os.Stat(script)).Value(t).Mode().Perm(), want, "other user", other)
			}
		})
	}
}

// If run.sh belongs to another user, a fetch does not change its mode. The fetch fails only if no user can execute
// run.sh.
func TestRunScriptOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of another user")
	}
	script := write(t, filepath.Join(openDir(t), runScript), []byte(goodScript))
	for mode, fails := range map[os.FileMode]bool{0o750: false, 0o654: false, 0o640: true} {
		must(t, os.Chown(script, 1, 1))
		must(t, os.Chmod(script, mode))
		asNobody(t, func() {
			err := (&job{}).ensureExecutable(script, mode)
			expect.True(t, (err != nil) == fails, mode, err)
		})
		expect.Equal(t, expect.Result(os.Stat(script)).Value(t).Mode().Perm(), mode, "became")
	}
}
