package task_test

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// A source is held if two workers could not start it, or one that is alone could not start it three times. Failures that
// are ten minutes apart do not count together, unless the source is held.
func TestFailingSource(t *testing.T) {
	f := task.FailingSource{Name: "sha"}
	fails := func(now task.Time, worker string, held bool, alone, others bool) {
		t.Helper()
		f.Fail(now, worker, held)
		f.Program, f.Why = "p", "why"
		expect.Equal(t, f.MustBeHeld(true), alone)
		expect.Equal(t, f.MustBeHeld(false), others)
		again := task.ParseFailing("sha", f.String())
		expect.Equal(t, again.String(), f.String())
		f = again
	}
	fails(1000, "v", false, false, false)
	fails(1001, "v", false, false, false)
	fails(1002, "v", false, true, false)
	expect.Equal(t, f.Since, 1000)
	fails(1603, "v", false, false, false)
	expect.Equal(t, f.Since, 1603)
	for _, worker := range []string{"w", "x", "y"} {
		fails(5000, worker, true, true, true)
	}
	expect.Equal(t, f.Workers, []string{"y", "x", "w"})
	expect.Equal(t, f.Failures, 4)
	expect.Equal(t, f.Since, 1603)
	for tried, next := range map[task.Time]task.Time{0: 1604, 1604: 1605, 1607: 1611, 1703: 1763} {
		f.Tried = tried
		expect.Equal(t, f.NextTrial(), next, tried)
	}
}
