package worker

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/worker/record"
)

// makeUnreadable makes reads of a file fail through the descriptor with which a round in this process writes the file.
func makeUnreadable(t *testing.T, path string) {
	t.Helper()
	blind := expect.Result(os.OpenFile(path, os.O_WRONLY, 0)).Value(t)
	defer blind.Close()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	found := false
	for _, e := range entries {
		fd, _ := strconv.Atoi(e.Name())
		if at, _ := os.Readlink("/proc/self/fd/" + e.Name()); at != path || fd == int(blind.Fd()) {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err == nil && flags&unix.O_APPEND != 0 { // the slot's own descriptor lacks O_APPEND
			must(t, unix.Dup3(int(blind.Fd()), fd, unix.O_CLOEXEC))
			found = true
		}
	}
	expect.MustTrue(t, found, "the worker does not have it open", path)
}

// If the worker cannot read the output of a round, Redis does not get the output. So the worker keeps the files.
func TestOutputThatCannotBeReadIsKept(t *testing.T) {
	w := newWorld(t)
	id := w.open("")
	out := strings.Repeat("o", record.InMemory+1)
	var worker *Worker
	worker = w.running(func(_ context.Context, r *Round) (Ended, error) {
		fmt.Fprint(r.Stdout, out)
		fmt.Fprint(r.Stderr, "err")
		makeUnreadable(t, worker.rounds()+"/slot-1.out")
		return Ended{}, nil
	})
	w.runOnce(worker)
	got := w.finished(id)
	expect.Equal(t, got.State, tdf.Failed, "the task")
	has(t, got.LastError(), "reading stdout: ")
	fileHas(t, w.path("p/results/w1-1-0.out"), out)
	fileHas(t, w.path("p/results/w1-1-0.err"), "err")
}
