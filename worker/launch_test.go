package worker

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// run runs one task with the script, and returns its output.
func (w *world) run(script, input string) string {
	w.Helper()
	w.script("p", script)
	id := w.open(input)
	w.runOnce(w.worker())
	r := w.task(id).Current()
	expect.MustEqual(w, r.Error, "")
	expect.MustEqual(w, r.Exit, "0")
	return r.Output
}

func TestArguments(t *testing.T) {
	w := newWorld(t)
	got := w.run(`printf '%s\n' "$0" "$PWD" "$@"`, `a 'b  c' "" $(id) * > ; \$HOME`)
	want := "./run.sh\n" + w.path("p") + "\na\nb  c\n\n$(id)\n*\n>\n;\n$HOME\n"
	expect.Equal(t, cmp.Diff(want, got), "")
}

func TestLongestInput(t *testing.T) {
	input := strings.Repeat("x", 128<<10-1)
	expect.Equal(t, newWorld(t).run("#!/bin/sh\nprintf %s \"$1\"", input), input, "bytes")
}

func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"TDF_CFG_REDIS_PASSWORD": "secret", "TDF_OTHER": "1", "REDISCLI_AUTH": "secret", "LD_PRELOAD": "",
		"LC_NUMERIC": "C", "TZ": "UTC", "HOME": "/home/of the user", "MORE": "of it",
	} {
		t.Setenv(name, value)
	}
	w := newWorld(t)
	w.cfg.Env = []string{"MORE"}
	t.Setenv("TMPDIR", "/no/directory")
	got := map[string]string{}
	for line := range strings.Lines(w.run("#!/bin/sh\nexec env\n", "")) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		got[name] = value
	}
	want := map[string]string{
		"LC_NUMERIC": "C", "TZ": "UTC", "HOME": "/home/of the user", "TMPDIR": "/no/directory",
		"TDF_NAMESPACE": w.cfg.Namespace, "TDF_TASK_ID": "1", "TDF_ROUND": "0", "TDF_PROGRAM": "p", "TDF_WORKER": "w1", "TDF_SLOT": "1",
		"TDF_START": w.task(1).Current().Entered[tdf.Running].String(), "TDF_TIMEOUT": "inf", "TDF_END_BEFORE": "inf",
		"TDF_GROUP": "", "TDF_META": "", "TDF_DIR": filepath.Join(w.worker().rounds(), filepath.Base(got["TDF_DIR"])), "MORE": "of it",
		"PYTHONUNBUFFERED": "1",
	}
	maps.DeleteFunc(got, func(name, _ string) bool { // ignore variables of this test and variables that shells add
		_, wanted := want[name]
		own := slices.Contains(inherited, name) || strings.HasPrefix(name, "LC_")
		return !wanted && (own || slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "_"}, name))
	})
	expect.Equal(t, cmp.Diff(want, got), "")
	w.logged("the environment variable TMPDIR names no directory\" TMPDIR=/no/directory")
}

// leakyDescriptor makes a descriptor that is not marked close-on-exec, like those that a worker inherits.
func leakyDescriptor(t *testing.T) int {
	t.Helper()
	dir := expect.Result(os.Open(t.TempDir())).Value(t)
	defer dir.Close()
	fd := expect.Result(unix.FcntlInt(dir.Fd(), unix.F_DUPFD, 100)).Value(t) // a shell uses descriptor 10 for itself
	t.Cleanup(func() { syscall.Close(fd) })
	return fd
}

// Programs do not inherit the descriptors that the worker inherited.
func TestDescriptorsAreNotInherited(t *testing.T) {
	fd := leakyDescriptor(t)
	script := fmt.Sprintf("#!/bin/sh\nif [ -e /dev/fd/%d ]; then echo open; else echo closed; fi", fd)
	expect.Equal(t, newWorld(t).run(script, ""), "closed\n", "descriptor", fd)
}

// A worker whose rounds run in this process leaves the process's descriptors as they are. So does a worker that does not run.
func TestDescriptorsOfTheProcessStay(t *testing.T) {
	fd := leakyDescriptor(t)
	w := newWorld(t)
	w.worker()
	w.open("", forHandler("p"))
	w.runOnce(w.worker(Handle("p", nothing)))
	flags, _, failed := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
	expect.Equal(t, failed, 0, "flags", flags)
	expect.Equal(t, flags&syscall.FD_CLOEXEC, 0, "flags", flags, failed)
}
