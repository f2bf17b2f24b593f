package tdf

import (
	"math"
	"slices"
	"strings"
	"testing"
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
		if state.Finished() && (task.NextDue(205) != removed || task.removeAt() != removed) {
			t.Errorf("%s: due at %v, removed at %v; want %v", state, task.NextDue(205), task.removeAt(), removed)
		}
		if m, ok := task.Settle(removed.Add(-1), nil); ok && m.Verb == VerbRemove {
			t.Errorf("%s: removed too early", state)
		}
		m, ok := task.Settle(removed, nil)
		if removes := ok && m.Verb == VerbRemove && m.To == None; removes != state.Finished() {
			t.Errorf("%s: the Move is %+v", state, m)
		}
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
		if err != nil {
			t.Error(err)
		}
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
		if !m.To.Settled() || m.NextDue != (Moment{After: 60}) {
			t.Errorf("%s to %s: next due %+v", m.Verb, m.To, m.NextDue)
		}
	}
	if m, err := keep(Failed).Archive(); err != nil || m.NextDue != Now {
		t.Errorf("archive: next due %+v, %v", m.NextDue, err)
	}
	if m, err := keep(Failed).Reopen(); err != nil || m.NextDue == (Moment{After: 60}) {
		t.Errorf("reopen: next due %+v, %v", m.NextDue, err)
	}
}

// Without a limit, a finished task is never due.
func TestNoRetention(t *testing.T) {
	task := taskIn(Succeeded)
	task.KeepFinished, task.KeepArchived = Forever, Forever
	if _, ok := task.Settle(maxFinite, nil); ok || task.NextDue(1) != Never {
		t.Errorf("settled: %v; due at %v", ok, task.NextDue(1))
	}
	task.KeepFinished = 60
	delete(task.Current().Entered, Succeeded)
	if _, ok := task.Settle(maxFinite, nil); ok || task.NextDue(1) != Never {
		t.Errorf("without the time of its end: settled: %v; due at %v", ok, task.NextDue(1))
	}
	if !slices.Contains(UsualSuccess().Missing, fieldKeepFinished) {
		t.Error("the usual case includes tasks with a retention period")
	}
}

func TestInvalidRetention(t *testing.T) {
	for _, c := range []struct {
		property           string
		finished, archived Seconds
	}{
		{"keep_finished", 0, 1},
		{"keep_finished", -1, 1},
		{"keep_finished", Seconds(math.NaN()), 1},
		{"keep_finished", 1e12, 1},
		{"keep_archived", 1, -1},
		{"keep_archived", 1, Seconds(math.NaN())},
		{"keep_archived", 1, Seconds(math.Inf(-1))},
	} {
		d := Defaults("p", "http://h/run.sh", "")
		d.KeepFinished, d.KeepArchived = c.finished, c.archived
		if err := d.Validate(); err == nil || !strings.HasPrefix(err.Error(), c.property+": ") {
			t.Errorf("%v, %v: %v", c.finished, c.archived, err)
		}
	}
}
