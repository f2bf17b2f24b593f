package rules

import (
	"errors"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/unixtime"
)

// A finished task is due at the end of its retention period, and the server then removes it (docs/lifecycle.md,
// "Retention").
func TestRetention(t *testing.T) {
	for _, state := range task.States {
		one := taskIn(state)
		one.Current().Entered[state], one.EndBefore = 200, task.Never
		one.KeepFinished, one.KeepArchived = 60, 30
		removed := task.Time(260)
		switch {
		case state == task.Archived:
			removed = 230
		case !state.Finished():
			removed = task.Never
		}
		if state.Finished() {
			expect.Equal(t, NextDue(one, 205), removed, state)
			expect.Equal(t, removeAt(one), removed, state)
		}
		if m, ok := Settle(one, removed.Add(-1), nil); ok && m.Verb == VerbRemove {
			t.Errorf("%s: removed too early", state)
		}
		m, ok := Settle(one, removed, nil)
		expect.Equal(t, ok && m.Verb == VerbRemove && m.To == task.None, state.Finished(), "the Move", m)
	}
}

// Each Move that finishes a task sets the end of the retention period.
func TestRetentionBeginsWithTheEnd(t *testing.T) {
	keep := func(state task.State) *task.Task {
		one := taskIn(state)
		one.KeepFinished, one.KeepArchived = 60, 0
		return one
	}
	var moves []Move
	add := func(m Move, err error) {
		expect.True(t, err == nil, err)
		moves = append(moves, m)
	}
	succeed, _ := Settle(keep(task.Executed), 111, nil)
	reject, _ := Settle(keep(task.Open), 111, errors.New("an input that is invalid"))
	add(succeed, nil)
	add(reject, nil)
	add(TimeOut(keep(task.Running)))
	add(Expire(keep(task.Open)))
	add(Cancel(keep(task.Running)))
	for _, m := range moves {
		expect.True(t, m.To.Settled(), m.Verb, "to", m.To, "next due", m.NextDue)
		expect.Equal(t, m.NextDue, Moment{After: 60})
	}
	expect.Equal(t, expect.Result(Archive(keep(task.Failed))).Value(t).NextDue, Now, "archive: next due")
	if m, err := Reopen(keep(task.Failed)); err != nil || m.NextDue == (Moment{After: 60}) {
		t.Errorf("reopen: next due %+v, %v", m.NextDue, err)
	}
}

// Without a limit, a finished task is never due.
func TestNoRetention(t *testing.T) {
	one := taskIn(task.Succeeded)
	one.KeepFinished, one.KeepArchived = task.Forever, task.Forever
	if _, ok := Settle(one, unixtime.Latest, nil); ok || NextDue(one, 1) != task.Never {
		t.Errorf("settled: %v; due at %v", ok, NextDue(one, 1))
	}
	one.KeepFinished = 60
	delete(one.Current().Entered, task.Succeeded)
	if _, ok := Settle(one, unixtime.Latest, nil); ok || NextDue(one, 1) != task.Never {
		t.Errorf("without the time of its end: settled: %v; due at %v", ok, NextDue(one, 1))
	}
}

// A finished task is due when its outputs must go. Archiving does not extend their time. Afterwards, the task is due at
// the end of its own retention period.
func TestOutputsAreRemoved(t *testing.T) {
	for _, c := range []struct {
		state   task.State
		outcome string
		removed task.Time
	}{
		{task.Succeeded, "succeeded", 260},
		{task.Failed, "failed", 260},
		{task.Archived, "succeeded", 160},
		{task.Archived, "cancelled", 170},
		{task.Archived, "", task.Never},
		{task.Running, "", task.Never},
	} {
		one := taskIn(c.state)
		one.Current().Entered = map[task.State]task.Time{task.Succeeded: 100, task.Expired: 110, c.state: 200}
		one.Outcome, one.KeepFinished, one.KeepArchived, one.KeepOutputs = c.outcome, 1000, 1000, 60
		at := removeOutputsAt(one)
		expect.Equal(t, at, c.removed, c.state, c.outcome)
		if c.removed < task.Never {
			expect.Equal(t, NextDue(one, 205), at, c.state, c.outcome)
		}
		if c.removed == task.Never {
			continue
		}
		if m, ok := Settle(one, c.removed.Add(-1), nil); ok {
			t.Errorf("%s: settled too early: %+v", c.state, m)
		}
		m, ok := Settle(one, c.removed, nil)
		expect.MustTrue(t, ok, c.state, ok, m)
		expect.Equal(t, m.Verb, VerbRemoveOutputs, c.state)
		expect.Equal(t, m.From, c.state)
		expect.Equal(t, m.Next, one.Round, c.state)
		expect.Equal(t, m.NextDue.Min, 1200, c.state)
		expect.True(t, m.Updates, c.state, ok, m)
		one.OutputsFrom, one.OutputsRemoved = one.Round+1, 300
		if m, ok := Settle(one, 1199, nil); ok || NextDue(one, 300) != 1200 {
			t.Errorf("%s: settled twice: %+v", c.state, m)
		}
		if m, ok := Settle(one, 1200, nil); !ok || m.Verb != VerbRemove {
			t.Errorf("%s: not removed: %+v", c.state, m)
		}
	}
}

// A task with many rounds loses its outputs in several bounded Moves. No round is left out, and the last Move removes the
// checkpoint.
func TestOutputsOfManyRoundsAreRemoved(t *testing.T) {
	one := taskIn(task.Failed)
	one.Round, one.KeepOutputs, one.KeepFinished = 250, 60, task.Forever
	one.Rounds = task.Rounds{250: {Entered: map[task.State]task.Time{task.Failed: 100}}}
	cleared := map[string]bool{}
	for step := 1; ; step++ {
		m, ok := Settle(one, 160, nil)
		if !ok {
			break
		}
		expect.MustTrue(t, len(m.Clear) <= 600, "step", step, len(m.Clear), "names, next due", m.NextDue)
		expect.MustTrue(t, step <= 3, "step", step, len(m.Clear), "names, next due", m.NextDue)
		expect.MustEqual(t, m.Updates, step == 3, "step", step)
		expect.MustEqual(t, m.NextDue.Min < task.Never, step < 3, "step", step)
		for _, name := range m.Clear {
			cleared[name] = true
		}
		one.OutputsFrom += roundsAtOnce
	}
	for n := range 251 {
		for _, name := range []string{"output", "error", "result", "files", "tail", "tail_end"} {
			expect.True(t, cleared[task.RoundField(n, name)], "round", n, "keeps its", name)
		}
	}
	expect.Len(t, cleared, 6*251+1)
	expect.True(t, cleared[task.FieldCheckpoint], len(cleared), "properties were removed")
}

// Each Move that leads to a finished state sets the time when the task or its outputs must go, whichever is earlier.
func TestOutputsAreDue(t *testing.T) {
	for _, c := range []struct {
		finished, archived, outputs task.Seconds
		from                        int
		ends, archives              Moment
	}{
		{task.Forever, task.Forever, 60, 0, Moment{After: 60}, Moment{Min: 160}},
		{30, task.Forever, 60, 0, Moment{After: 30}, Moment{Min: 160}},
		{90, 5, 60, 0, Moment{After: 60}, Moment{After: 5, Max: 160}},
		{90, 5, 60, 1, Moment{After: 60}, Moment{After: 5}},
		{task.Forever, 0, task.Forever, 0, Moment{Min: task.Never}, Moment{}},
	} {
		one := taskIn(task.Executed)
		one.Round, one.Rounds = 0, task.Rounds{0: {Entered: map[task.State]task.Time{task.Executed: 90}, Committed: true}}
		one.EndBefore, one.KeepFinished, one.KeepArchived, one.KeepOutputs = task.Never, c.finished, c.archived, c.outputs
		m, ok := Settle(one, 95, nil)
		expect.True(t, ok, c, "succeed", m.NextDue)
		expect.Equal(t, m.NextDue, c.ends)
		one.State, one.OutputsFrom = task.Succeeded, c.from
		one.Rounds[0].Entered[task.Succeeded] = 100
		expect.Equal(t, expect.Result(Archive(one)).Value(t).NextDue, c.archives, "archive")
	}
}

func TestInvalidKeepOutputs(t *testing.T) {
	for _, value := range []string{"-1", "x", "0x1", "nan", "1e300"} {
		one, err := task.ParseTask(1, task.Hash{"program": "p", "source": "http://h/run.sh", "state": "failed", "keep_outputs": value, "outputs_from": value})
		expect.Fails(t, err, "", "keep_outputs=", value)
		expect.Compare(t, one.OutputsFrom, "<=", task.MaxRound+1, "keep_outputs=", value)
	}
}
