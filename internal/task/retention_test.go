package task

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/unixtime"
)

// A finished task is due at the end of its retention period, and the server then removes it (docs/lifecycle.md,
// "Retention").
func TestRetention(t *testing.T) {
	for _, state := range States {
		task := taskIn(state)
		task.Current().Entered[state], task.EndBefore = 200, Never
		task.KeepFinished, task.KeepArchived = 60, 30
		removed := Time(260)
		switch {
		case state == Archived:
			removed = 230
		case !state.Finished():
			removed = Never
		}
		if state.Finished() {
			expect.Equal(t, task.NextDue(205), removed, state)
			expect.Equal(t, task.removeAt(), removed, state)
		}
		if m, ok := task.Settle(removed.Add(-1), nil); ok && m.Verb == VerbRemove {
			t.Errorf("%s: removed too early", state)
		}
		m, ok := task.Settle(removed, nil)
		expect.Equal(t, ok && m.Verb == VerbRemove && m.To == None, state.Finished(), "the Move", m)
	}
}

// Each Move that finishes a task sets the end of the retention period.
func TestRetentionBeginsWithTheEnd(t *testing.T) {
	keep := func(state State) *Task {
		task := taskIn(state)
		task.KeepFinished, task.KeepArchived = 60, 0
		return task
	}
	var moves []Move
	add := func(m Move, err error) {
		expect.True(t, err == nil, err)
		moves = append(moves, m)
	}
	succeed, _ := keep(Executed).Settle(111, nil)
	reject, _ := keep(Open).Settle(111, errTrailing)
	add(succeed, nil)
	add(reject, nil)
	add(keep(Running).TimeOut())
	add(keep(Open).Expire())
	add(keep(Running).Cancel())
	for _, m := range moves {
		expect.True(t, m.To.Settled(), m.Verb, "to", m.To, "next due", m.NextDue)
		expect.Equal(t, m.NextDue, Moment{After: 60})
	}
	expect.Equal(t, expect.Result(keep(Failed).Archive()).Value(t).NextDue, Now, "archive: next due")
	if m, err := keep(Failed).Reopen(); err != nil || m.NextDue == (Moment{After: 60}) {
		t.Errorf("reopen: next due %+v, %v", m.NextDue, err)
	}
}

// Without a limit, a finished task is never due.
func TestNoRetention(t *testing.T) {
	task := taskIn(Succeeded)
	task.KeepFinished, task.KeepArchived = Forever, Forever
	if _, ok := task.Settle(unixtime.Latest, nil); ok || task.NextDue(1) != Never {
		t.Errorf("settled: %v; due at %v", ok, task.NextDue(1))
	}
	task.KeepFinished = 60
	delete(task.Current().Entered, Succeeded)
	if _, ok := task.Settle(unixtime.Latest, nil); ok || task.NextDue(1) != Never {
		t.Errorf("without the time of its end: settled: %v; due at %v", ok, task.NextDue(1))
	}
}

// A finished task is due when its outputs must go. Archiving does not extend their time. Afterwards, the task is due at
// the end of its own retention period.
func TestOutputsAreRemoved(t *testing.T) {
	for _, c := range []struct {
		state   State
		outcome string
		removed Time
	}{
		{Succeeded, "succeeded", 260},
		{Failed, "failed", 260},
		{Archived, "succeeded", 160},
		{Archived, "cancelled", 170},
		{Archived, "", Never},
		{Running, "", Never},
	} {
		task := taskIn(c.state)
		task.Current().Entered = map[State]Time{Succeeded: 100, Expired: 110, c.state: 200}
		task.Outcome, task.KeepFinished, task.KeepArchived, task.KeepOutputs = c.outcome, 1000, 1000, 60
		at := task.removeOutputsAt()
		expect.Equal(t, at, c.removed, c.state, c.outcome)
		if c.removed < Never {
			expect.Equal(t, task.NextDue(205), at, c.state, c.outcome)
		}
		if c.removed == Never {
			continue
		}
		if m, ok := task.Settle(c.removed.Add(-1), nil); ok {
			t.Errorf("%s: settled too early: %+v", c.state, m)
		}
		m, ok := task.Settle(c.removed, nil)
		expect.MustTrue(t, ok, c.state, ok, m)
		expect.Equal(t, m.Verb, VerbRemoveOutputs, c.state)
		expect.Equal(t, m.From, c.state)
		expect.Equal(t, m.Next, task.Round, c.state)
		expect.Equal(t, m.NextDue.Min, 1200, c.state)
		expect.True(t, m.Updates, c.state, ok, m)
		task.OutputsFrom, task.OutputsRemoved = task.Round+1, 300
		if m, ok := task.Settle(1199, nil); ok || task.NextDue(300) != 1200 {
			t.Errorf("%s: settled twice: %+v", c.state, m)
		}
		if m, ok := task.Settle(1200, nil); !ok || m.Verb != VerbRemove {
			t.Errorf("%s: not removed: %+v", c.state, m)
		}
	}
}

// A task with many rounds loses its outputs in several bounded Moves. No round is left out, and the last Move removes the
// checkpoint.
func TestOutputsOfManyRoundsAreRemoved(t *testing.T) {
	task := taskIn(Failed)
	task.Round, task.KeepOutputs, task.KeepFinished = 250, 60, Forever
	task.Rounds = Rounds{250: {Entered: map[State]Time{Failed: 100}}}
	cleared := map[string]bool{}
	for step := 1; ; step++ {
		m, ok := task.Settle(160, nil)
		if !ok {
			break
		}
		expect.MustTrue(t, len(m.Clear) <= 600, "step", step, len(m.Clear), "names, next due", m.NextDue)
		expect.MustTrue(t, step <= 3, "step", step, len(m.Clear), "names, next due", m.NextDue)
		expect.MustEqual(t, m.Updates, step == 3, "step", step)
		expect.MustEqual(t, m.NextDue.Min < Never, step < 3, "step", step)
		for _, name := range m.Clear {
			cleared[name] = true
		}
		task.OutputsFrom += roundsAtOnce
	}
	for n := range 251 {
		for _, name := range []string{"output", "error", "result", "files", "tail", "tail_end"} {
			expect.True(t, cleared[RoundField(n, name)], "round", n, "keeps its", name)
		}
	}
	expect.Len(t, cleared, 6*251+1)
	expect.True(t, cleared[FieldCheckpoint], len(cleared), "properties were removed")
}

// Each Move that leads to a finished state sets the time when the task or its outputs must go, whichever is earlier.
func TestOutputsAreDue(t *testing.T) {
	for _, c := range []struct {
		finished, archived, outputs Seconds
		from                        int
		ends, archives              Moment
	}{
		{Forever, Forever, 60, 0, Moment{After: 60}, Moment{Min: 160}},
		{30, Forever, 60, 0, Moment{After: 30}, Moment{Min: 160}},
		{90, 5, 60, 0, Moment{After: 60}, Moment{After: 5, Max: 160}},
		{90, 5, 60, 1, Moment{After: 60}, Moment{After: 5}},
		{Forever, 0, Forever, 0, Moment{Min: Never}, Moment{}},
	} {
		task := taskIn(Executed)
		task.Round, task.Rounds = 0, Rounds{0: {Entered: map[State]Time{Executed: 90}, Committed: true}}
		task.EndBefore, task.KeepFinished, task.KeepArchived, task.KeepOutputs = Never, c.finished, c.archived, c.outputs
		m, ok := task.Settle(95, nil)
		expect.True(t, ok, c, "succeed", m.NextDue)
		expect.Equal(t, m.NextDue, c.ends)
		task.State, task.OutputsFrom = Succeeded, c.from
		task.Rounds[0].Entered[Succeeded] = 100
		expect.Equal(t, expect.Result(task.Archive()).Value(t).NextDue, c.archives, "archive")
	}
}

func TestInvalidKeepOutputs(t *testing.T) {
	for _, value := range []string{"-1", "x", "0x1", "nan", "1e300"} {
		task, err := ParseTask(1, Hash{"program": "p", "source": "http://h/run.sh", "state": "failed", "keep_outputs": value, "outputs_from": value})
		expect.Fails(t, err, "", "keep_outputs=", value)
		expect.Compare(t, task.OutputsFrom, "<=", MaxRound+1, "keep_outputs=", value)
	}
}
