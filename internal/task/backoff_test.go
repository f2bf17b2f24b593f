package task

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/expect"
)

// Each wait is backoff_factor times as long as the previous wait, but at most backoff_max. Failed and timed out rounds
// count together (docs/lifecycle.md, "Back-off").
func TestBackoffGrows(t *testing.T) {
	for before, want := range []Seconds{10, 30, 90, 270, 300, 300} {
		for _, ending := range []struct {
			state State
			end   func(*Task) Move
		}{{Executed, mustFail}, {Running, mustTimeOut}} {
			task := taskIn(ending.state)
			task.Backoff, task.BackoffFactor, task.BackoffMax = 10, 3, 300
			task.MaxFails, task.MaxTimeouts = 100, 100
			task.Fails, task.Timeouts = before/2, before-before/2
			task.StartAfter = 70
			m := ending.end(task)
			expect.Equal(t, m.To, Open, before)
			expect.Compare(t, m.Score.After, ">=", want*0.8, before)
			expect.Compare(t, m.Score.After, "<=", want*1.2, before)
			expect.Equal(t, m.Score.Min, 70, before)
			expect.True(t, slices.Contains(m.Stamp, Stamp{"ready", m.Score}), "after", before, "rounds: the property ready is missing", m.Stamp)
			expect.True(t, strings.HasSuffix(m.Note, fmt.Sprintf("reopened, waits %s s", m.Score.After)), "after", before, "rounds: the note is", m.Note)
			checkRow(t, task, m)
		}
	}
}

func mustFail(t *Task) Move {
	t.Current().HasError = true
	m, _ := t.Settle(111, nil)
	return m
}

func mustTimeOut(t *Task) Move {
	m, _ := t.TimeOut()
	return m
}

// A task does not wait if it has no back-off. It also does not wait after a lost or released round, or if it has failed
// for good.
func TestNoBackoff(t *testing.T) {
	for name, m := range map[string]Move{
		"without a back-off": func() Move {
			task := taskIn(Executed)
			task.MaxFails = 1
			return mustFail(task)
		}(),
		"failed for good": func() Move {
			task := taskIn(Executed)
			task.MaxFails, task.Backoff, task.BackoffMax = 1, 10, 300
			task.Current().Permanent = true
			return mustFail(task)
		}(),
		"lost": func() Move {
			task := taskIn(Running)
			task.MaxLosses, task.Backoff, task.BackoffMax = 3, 10, 300
			m, _ := task.lose(Running)
			return m
		}(),
		"released": func() Move {
			task := taskIn(Running)
			task.Backoff, task.BackoffMax = 10, 300
			m, _ := task.Release("draining")
			return m
		}(),
	} {
		expect.Equal(t, m.Score.After, 0, name)
		expect.NotContains(t, m.Note, "waits", name)
		expect.True(t, !slices.ContainsFunc(m.Stamp, func(s Stamp) bool { return s.Name == "ready" }), name, "the task waits", m)
	}
}

// Whatever the values are, the wait is a finite time of at most 1.2 × backoff_max.
func TestBackoffIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		task := taskIn(Executed)
		task.ID = rapid.Int64Range(1, math.MaxInt64).Draw(t, "id")
		task.Round = rapid.IntRange(0, MaxRound).Draw(t, "round")
		task.Fails, task.Timeouts = rapid.IntRange(0, MaxCount).Draw(t, "fails"), rapid.IntRange(0, MaxCount).Draw(t, "timeouts")
		task.Backoff = Seconds(rapid.Float64Range(0, float64(MaxBackoff)).Draw(t, "backoff"))
		task.BackoffFactor = rapid.Float64Range(1, MaxBackoffFactor).Draw(t, "factor")
		task.BackoffMax = Seconds(rapid.Float64Range(1e-6, float64(MaxBackoff)).Draw(t, "max"))
		if err := task.Validate(); err != nil {
			t.Fatal(err)
		}
		delay := task.backoff()
		if !(delay >= 0 && delay <= task.BackoffMax*1.2+0.001) || delay != task.backoff() {
			t.Fatalf("the wait is %v", delay)
		}
	})
}

// Tasks that fail together wait for different times, spread over the whole range.
func TestBackoffSpreads(t *testing.T) {
	factors := map[float64]int{}
	for id := range int64(1700) {
		factors[spread(id+1, 2)]++
	}
	for factor, n := range factors {
		expect.Compare(t, factor, ">=", 0.8, n)
		expect.Compare(t, factor, "<=", 1.2000001, n)
		expect.Compare(t, n, ">=", 60)
		expect.Compare(t, n, "<=", 140)
	}
	expect.Len(t, factors, spreads, "different factors")
}

// An invalid value in Redis counts as the default. It must not stop the server, or delete a result.
func TestInvalidValuesInRedis(t *testing.T) {
	for _, change := range []Hash{
		{"backoff": "inf", "backoff_max": "inf"},
		{"backoff": "1e11"},
		{"backoff": "0", "backoff_factor": "0"},
		{"backoff": "x"},
		{"keep_finished": "0"},
		{"keep_finished": "0.0000001"},
		{"keep_finished": "x"},
		{"keep_archived": "-1"},
	} {
		d := Defaults("p", "http://h/run.sh", "")
		d.MaxFails = 1
		h := Hash{}
		for _, f := range d.OpenFields("") {
			h[f.Name] = f.Value
		}
		h["state"], h["0:executed"], h["0:claim"], h["0:exit"], h["0:error"] = "executed", "100", "c", "1", "boom"
		for name, value := range change {
			h[name] = value
		}
		task, err := ParseTask(1, h)
		expect.Fails(t, err, "", change, "no error")
		if m, ok := task.Settle(200, err); !ok || m.To != Open || m.Score != (Moment{}) {
			t.Errorf("%v: a failed round leads to %+v", change, m)
		}
		task.MaxFails = 0
		m, _ := task.Settle(200, err)
		expect.True(t, m.NextDue == noEarlierThan(Never), change, "the finished task is due", m.NextDue)
	}
}

// If a task was put off, workers can claim it again only after the delay. The property ready of the task is the end of
// the delay (docs/lifecycle.md, "Put off").
func TestReleaseLater(t *testing.T) {
	task := taskIn(Running)
	task.StartAfter = 50
	m, err := task.ReleaseLater(300, "the licence\nis in use")
	want := Moment{After: 300, Min: 50}
	expect.NoError(t, err)
	expect.Equal(t, m.Verb, VerbRelease)
	expect.Equal(t, m.Score, want)
	expect.True(t, slices.Contains(m.Stamp, Stamp{"ready", want}), m, err)
	checkRow(t, task, m)
	expect.Equal(t, m.Note, "released for 300 s: the licence is in use", "note")
	if m, err := task.ReleaseLater(-1, ""); err != nil || m.Score.After != 1 || m.Note != "released for 1 s: " {
		t.Errorf("a negative delay in a later round: %+v, %v", m, err)
	}
	task.Round = 0
	expect.Equal(t, expect.Result(task.ReleaseLater(0, "")).Value(t).Score.After, 0, "no delay in the first round")
	task.Round = MaxRound
	if _, err := task.ReleaseLater(300, ""); err != ErrLastRound {
		t.Errorf("in the last round: %v", err)
	}
	for _, state := range States { // only a running task can be put off
		_, err := taskIn(state).ReleaseLater(300, "no licence")
		expect.Equal(t, errors.As(err, new(*StateError)), state != Running, state)
	}
}

// If a task was put off and then cancelled, a retry does not wait for the rest of the delay.
func TestRetryForgetsThatATaskWasPutOff(t *testing.T) {
	task := taskIn(Expired)
	task.Ready = 500
	m := expect.Result(task.Reopen()).Value(t)
	expect.Equal(t, m.Score, Moment{})
	expect.True(t, slices.Contains(m.Clear, "ready"), m)
	task.Ready = 0
	if m, _ := task.Reopen(); slices.Contains(m.Clear, "ready") {
		t.Errorf("a task that was never put off: %+v", m)
	}
}

// A change of the input keeps the delay, and a change of start_after ends it.
func TestChangeOfATaskThatWasPutOff(t *testing.T) {
	task := taskIn(Open)
	task.Current().Entered[Open], task.Ready = 100, 500
	expect.Equal(t, expect.Result(task.Change(Changes{Input: new("2")})).Value(t).Score, momentAt(500))
	m := expect.Result(task.Change(Changes{StartAfter: new(Time(120).Std())})).Value(t)
	expect.Equal(t, m.Score, momentAt(120))
	expect.True(t, slices.Contains(m.Clear, "ready"), m)
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
		got := field(m, "2:permanent")
		expect.NoError(t, err)
		expect.Equal(t, got == "1", permanent)
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
