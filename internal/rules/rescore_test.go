package rules

import (
	"slices"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

func TestRescore(t *testing.T) {
	for name, c := range map[string]struct {
		start, entered, score, now task.Time
		i                          int
		want, stamp                task.Time // 0 means that the test expects no Move, or no stamp
		ready                      string
	}{
		"the score is right":             {0, 50, 50, 100, 0, 0, 0, ""},
		"start_after to come":            {5000, 50, 5000, 100, 0, 0, 0, ""},
		"put off by a claim":             {0, 50, 105, 100, 0, 0, 0, ""},
		"the clock was set back":         {0, 5000, 5000, 100, 0, 100, 100, ""},
		"the third task of the call":     {0, 5002, 5002, 100, 2, 100.000002, 100.000002, ""},
		"start_after in between":         {2000, 5000, 5000, 100, 0, 2000, 100, ""},
		"the third, a later start_after": {2000, 5000, 5000, 100, 2, 2000.000002, 100.000002, "2000.000002"},
		"a score that nothing explains":  {0, 50, 5000, 100, 0, 50, 0, ""},
		"start_after was changed":        {200, 50, 5000, 100, 0, 200, 0, ""},
	} {
		one := taskIn(task.Open)
		one.StartAfter, one.EndBefore = c.start, 9000
		one.Current().Entered[task.Open] = c.entered
		m, ok := Rescore(one, c.score, c.now, c.i)
		if ok != (c.want > 0) {
			t.Errorf("%s: %v, %+v", name, ok, m)
			continue
		}
		if !ok {
			continue
		}
		var stamp task.Time
		for _, s := range m.Stamp {
			stamp = s.At.Min
		}
		ready := ""
		for _, f := range m.Set {
			if f.Name == "ready" {
				ready = f.Value
			}
		}
		expect.Equal(t, m.Score, momentAt(c.want), name)
		expect.Equal(t, stamp, c.stamp, name)
		expect.Equal(t, ready, c.ready, name)
		expect.Equal(t, m.NextDue, momentAt(9000), name)
		expect.Equal(t, m.From, task.Open, name)
		expect.Equal(t, m.To, task.Open, name)
		expect.Equal(t, m.Next, 2, name)
	}
	for _, state := range task.States {
		if state == task.Open {
			continue
		}
		one := taskIn(state)
		if m, ok := Rescore(one, 5000, 100, 0); ok {
			t.Errorf("%s: %+v", state, m)
		}
	}
}

func TestRescoreRunning(t *testing.T) {
	for name, c := range map[string]struct {
		lease, deadline, entered, started task.Time
		length                            task.Seconds
		want, wantDeadline, look          task.Time // 0 means that the test expects no Move
	}{
		"right":                            {130, 900, 50, 60, 30, 0, 0, 0},
		"within the slack":                 {140, 900, 50, 60, 30, 0, 0, 0},
		"no lease is known":                {5000, 900, 50, 60, 0, 0, 0, 0},
		"a lease without an end":           {task.Never, 900, 50, 60, 30, 0, 0, 0},
		"the clock was set back":           {4030, 4500, 4000, 0, 30, 130, 600, 130},
		"the program began later":          {4030, 4500, 3900, 4010, 30, 130, 590, 130},
		"it had run for long":              {4030, 4500, 50, 60, 30, 130, 600, 130},
		"no timeout":                       {4030, task.Never, 4000, 0, 30, 130, 0, 130},
		"the deadline is end_before":       {4030, 9000, 4000, 0, 30, 130, 0, 130},
		"the deadline is nearly over":      {4030, 4005, 4000, 0, 30, 130, 130, 130},
		"a lease that nothing can explain": {1e12, 900, 50, 60, 30, 130, 130, 130},
		"a lease beyond end_before":        {1e12, 900, 50, 60, 9500, 9600, 9000, 9000},
	} {
		one := taskIn(task.Running)
		one.EndBefore, one.LeaseUntil, one.Deadline = 9000, c.lease, c.deadline
		one.Current().Entered[task.Running], one.Current().Started = c.entered, c.started
		one.Lease = c.length
		m, ok := RescoreRunning(one, 77, 100)
		if ok != (c.want > 0) {
			t.Errorf("%s: %v, %+v", name, ok, m)
			continue
		}
		if !ok {
			continue
		}
		set := map[string]string{}
		for _, f := range m.Set {
			set[f.Name] = f.Value
		}
		deadline := ""
		if c.wantDeadline > 0 {
			deadline = c.wantDeadline.String()
		}
		expect.Equal(t, set["lease_until"], c.want.String(), name)
		expect.Equal(t, set["deadline"], deadline, name)
		expect.Equal(t, m.NextDue, momentAt(c.look), name)
		expect.Equal(t, m.Score, momentAt(77), name)
		expect.Equal(t, m.Next, 2, name)
		expect.Len(t, m.Stamp, 0, name)
	}
}

// A round that a worker of the original TDF runs has no lease. Its timeout counts from the beginning of the round.
func TestRescoreRunningWithoutAClaim(t *testing.T) {
	for entered, want := range map[task.Time]bool{50: false, 105: false, 4000: true} {
		one := taskIn(task.Running)
		one.LeaseUntil, one.Deadline, one.Timeout = 0, 0, 40
		one.Current().Claim, one.Current().Entered[task.Running] = "", entered
		m, ok := RescoreRunning(one, 77, 100)
		expect.Equal(t, ok, want, entered, m)
		if ok {
			expect.MustLen(t, m.Stamp, 1)
			expect.Equal(t, m.Stamp[0], Stamp{"2:running", momentAt(100)})
			expect.Equal(t, m.NextDue, momentAt(140))
			expect.Equal(t, m.Score, momentAt(77))
		}
	}
}

// If the clock is set back, a task that a worker had put off waits for its delay once more, but not for longer.
func TestRescoreKeepsTheDelayOfATaskThatWasPutOff(t *testing.T) {
	for name, c := range map[string]struct {
		start, entered, ready, score task.Time
		want                         task.Time // 0 if the score needs no correction
		wantReady                    string
	}{
		"no leap":                    {0, 90, 4000, 4000, 0, ""},
		"the clock was set back":     {0, 5000, 5300, 5300, 400, "400"},
		"start_after comes later":    {4500, 5000, 5300, 5300, 4500, ""},
		"claimed since, and failed":  {0, 5000, 4000, 5000, 100, ""},
		"a score beyond the put-off": {0, 90, 200, 5000, 200, "200"},
	} {
		one := taskIn(task.Open)
		one.StartAfter, one.EndBefore, one.Ready = c.start, 9000, c.ready
		one.Current().Entered[task.Open] = c.entered
		m, ok := Rescore(one, c.score, 100, 0)
		expect.Equal(t, ok, c.want > 0, name)
		if ok {
			expect.Equal(t, m.Score, momentAt(c.want), name)
			expect.Equal(t, field(m, "ready"), c.wantReady, name)
		}
	}
}

// If the clock is set back, a task that waited for its dependencies does not wait once more. A task from a dump has lost the
// number of its links. Such a task is loaded into a Redis whose clock is behind, too.
func TestRescoreAfterDependencies(t *testing.T) {
	late := taskIn(task.Open) // a real delay: it stays right
	late.Round, late.EndBefore, late.Ready = 2, 9000, 7200
	late.Current().Entered[task.Open] = 7100
	if m, ok := Rescore(late, 7200, 100, 0); !ok || m.Score != momentAt(200) {
		t.Errorf("a task that was put off: %v, %+v", ok, m)
	}
	for _, c := range []struct{ round, linked int }{{2, 1}, {0, 1}, {0, 0}} {
		one := taskIn(task.Open)
		one.Round, one.EndBefore, one.Ready = c.round, 9000, 7200
		one.Current().Entered[task.Open], one.Current().Linked = 10, c.linked
		if m, ok := Rescore(one, 7200, 100, 0); !ok || m.Score != momentAt(10) || !slices.Contains(m.Clear, task.FieldReady) {
			t.Errorf("%+v: %v, %+v", c, ok, m)
		}
	}
}
