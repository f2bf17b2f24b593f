package process

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/testlog"
)

// aSweep returns a sweep that calls find in each pass to get its processes. It also returns the log and the recorded
// pauses.
func aSweep(find func(pass int) []proc, kill func(proc) error) (*sweep, *testlog.Buffer, *[]time.Duration) {
	log, pauses := &testlog.Buffer{}, &[]time.Duration{}
	return &sweep{
		find: func(denied map[key]bool) ([]proc, error) {
			return slices.DeleteFunc(find(len(*pauses)), func(pr proc) bool { return denied[pr.key] }), nil
		},
		kill:  kill,
		pause: func(_ context.Context, d time.Duration) { *pauses = append(*pauses, d) },
		log:   slog.New(slog.NewTextHandler(log, nil)),
		found: map[key]bool{}, denied: map[key]bool{},
	}, log, pauses
}

func processNumber(pid int) proc { return proc{key: key{pid, 1}, state: 'D'} }

// Processes of an earlier worker may survive SIGKILL for hours in state D. The sweep logs these processes. They delay a
// worker only for a short time, and do not keep a processor busy.
func TestASweepIsBounded(t *testing.T) {
	s, log, pauses := aSweep(func(int) []proc { return []proc{processNumber(4711)} }, func(proc) error { return nil })
	expect.Equal(t, s.run(t.Context()), 0, "have ended")
	n := len(*pauses)
	expect.Equal(t, n, sweepSamePasses)
	expect.MustEqual(t, (*pauses)[n-1], longestPause, n)
	expect.True(t, slices.IsSorted(*pauses), n, "pauses", *pauses)
	for _, line := range []string{"they do not end after SIGKILL", "continuing without waiting for them"} {
		text := log.String()
		expect.Equal(t, strings.Count(text, line), 1, line)
		expect.Contains(t, text, "pids=[4711]", line)
	}
}

// If processes fork all the time, the sweep does not pause for longer from pass to pass. It still ends.
func TestSweepOfForkingProcesses(t *testing.T) {
	s, log, pauses := aSweep(func(pass int) []proc { return []proc{processNumber(pass + 2)} }, func(proc) error { return nil })
	expect.Equal(t, s.run(t.Context()), sweepAllPasses, "have ended")
	n := len(*pauses)
	expect.Equal(t, n, sweepAllPasses)
	expect.Equal(t, slices.Max(*pauses), lastPause/10, n)
	expect.Contains(t, log.String(), "continuing without", n)
}

func TestSweepSkipsProcessesOfOthers(t *testing.T) {
	left := []proc{processNumber(2), processNumber(3)}
	s, log, pauses := aSweep(func(pass int) []proc { return slices.Clone(left[pass:]) }, func(pr proc) error {
		if pr.pid == 3 {
			return os.NewSyscallError("kill", fs.ErrPermission)
		}
		return nil
	})
	ended := s.run(t.Context())
	expect.Equal(t, ended, 1)
	expect.Len(t, *pauses, 1, ended)
	expect.Contains(t, log.String(), "cannot be ended", ended)
}

// If the kernel keeps processes, the pauses between passes grow. The processes are logged once.
func TestPausesGrowWhileProcessesStay(t *testing.T) {
	slow, reported := stubborn{pause: firstPause}, 0
	for range 100 {
		if slow.saw([]proc{processNumber(2), processNumber(3)}); slow.isNews() {
			reported++
		}
	}
	expect.Equal(t, slow.pause, longestPause, reported, "times")
	expect.Equal(t, reported, 1)
	slow.saw([]proc{processNumber(3)})
	expect.Equal(t, slow.pause, longestPause, "a pause of … after one of them has ended")
	slow.saw([]proc{processNumber(3), processNumber(4)})
	expect.Equal(t, slow.pause, firstPause)
	expect.Equal(t, slow.same, 0)
}
