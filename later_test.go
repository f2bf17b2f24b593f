package tdf

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// If a task was put off, workers can claim it again only after the delay. The property ready of the task is the end of
// the delay (docs/lifecycle.md, "Put off").
func TestReleaseLater(t *testing.T) {
	task := taskIn(Running)
	task.StartAfter = 50
	m, err := task.ReleaseLater(300, "the licence\nis in use")
	want := Moment{After: 300, Min: 50}
	if err != nil || m.Verb != VerbRelease || m.Score != want || !slices.Contains(m.Stamp, Stamp{"ready", want}) {
		t.Errorf("%+v, %v", m, err)
	}
	checkRow(t, task, m)
	if m.Note != "released for 300 s: the licence is in use" {
		t.Errorf("note %q", m.Note)
	}
	if m, err := task.ReleaseLater(-1, ""); err != nil || m.Score.After != 1 || m.Note != "released for 1 s: " {
		t.Errorf("a negative delay in a later round: %+v, %v", m, err)
	}
	task.Round = 0
	if m, err := task.ReleaseLater(0, ""); err != nil || m.Score.After != 0 {
		t.Errorf("no delay in the first round: %+v, %v", m, err)
	}
	task.Round = MaxRound
	if _, err := task.ReleaseLater(300, ""); err != ErrLastRound {
		t.Errorf("in the last round: %v", err)
	}
}

// If a task was put off and then cancelled, a retry does not wait for the rest of the delay.
func TestRetryForgetsThatATaskWasPutOff(t *testing.T) {
	task := taskIn(Expired)
	task.Ready = 500
	m, err := task.Reopen()
	if err != nil || m.Score != (Moment{}) || !slices.Contains(m.Clear, "ready") {
		t.Errorf("%+v, %v", m, err)
	}
	task.Ready = 0
	if m, _ := task.Reopen(); slices.Contains(m.Clear, "ready") {
		t.Errorf("a task that was never put off: %+v", m)
	}
}

// A change of the input keeps the delay, and a change of start_after ends it.
func TestChangeOfATaskThatWasPutOff(t *testing.T) {
	task := taskIn(Open)
	task.Current().Entered[Open], task.Ready = 100, 500
	if m, err := task.Change(Changes{Input: new("2")}); err != nil || m.Score != momentAt(500) {
		t.Errorf("%+v, %v", m, err)
	}
	m, err := task.Change(Changes{StartAfter: new(Time(120).Std())})
	if err != nil || m.Score != momentAt(120) || !slices.Contains(m.Clear, "ready") {
		t.Errorf("%+v, %v", m, err)
	}
}

// If the worker reports a failure as permanent, the server does not reopen the task, whatever max_fails allows
// (docs/lifecycle.md, "Failed for good").
func TestPermanentFailure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		task := drawTask(t)
		r := task.Current()
		r.Permanent = true
		now := Time(rapid.IntRange(95, 1100).Draw(t, "now"))
		m, ok := task.Settle(now, nil)
		r.Permanent = false
		usual, usually := task.Settle(now, nil)
		if ok != usually || m.Verb != usual.Verb {
			t.Fatalf("with Permanent, the task is settled as %+v; without Permanent, as %+v", m, usual)
		}
		if ok && m.Verb == VerbFail && m.To != Failed {
			t.Fatalf("permanent failure %d, with max_fails %d: the task is %s, want failed", task.Fails+1, task.MaxFails, m.To)
		}
		if ok && m.Verb != VerbFail && m.To != usual.To {
			t.Fatalf("%s: the task is %s; without Permanent, it is %s", m.Verb, m.To, usual.To)
		}
		if ok && m.Verb == VerbFail && field(m, "fails") != field(usual, "fails") {
			t.Fatalf("the property fails is %s; without Permanent, it is %s", field(m, "fails"), field(usual, "fails"))
		}
	})
}

// A permanent failure concerns only its round. If a later round fails, max_fails decides as usual.
func TestPermanentIsOfOneRound(t *testing.T) {
	task := taskIn(Running)
	for _, permanent := range []bool{false, true} {
		m, err := task.Execute("c", Result{Error: "no such file", Exit: "1", Permanent: permanent})
		if got := field(m, "2:permanent"); err != nil || (got == "1") != permanent {
			t.Errorf("%v: %q, %v", permanent, got, err)
		}
	}
	h := Hash{"state": "executed", "round": "1", "max_fails": "3", "0:permanent": "1", "0:failure": "5", "1:executed": "9", "1:claim": "c", "1:error": "x"}
	retried, _ := ParseTask(1, h)
	if m, ok := retried.Settle(10, nil); !ok || m.To != Open {
		t.Errorf("after a retry: %v, %+v", ok, m)
	}
	h["1:permanent"] = "1"
	again, _ := ParseTask(1, h)
	if m, ok := again.Settle(10, nil); !ok || m.To != Failed || !strings.HasPrefix(m.Note, "failed for good") {
		t.Errorf("%v, %+v", ok, m)
	}
}

// Only a running task can be put off.
func TestReleaseLaterFromEveryState(t *testing.T) {
	for _, state := range States {
		_, err := taskIn(state).ReleaseLater(300, "no licence")
		var found *StateError
		if errors.As(err, &found) == (state == Running) || state == Running && err != nil {
			t.Errorf("from %s: %v", state, err)
		}
	}
}
