package rules

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// Each wait is backoff_factor times as long as the previous wait, but at most backoff_max. Failed and timed out rounds
// count together (docs/lifecycle.md, "Back-off").
func TestBackoffGrows(t *testing.T) {
	for before, want := range []task.Seconds{10, 30, 90, 270, 300, 300} {
		for _, ending := range []struct {
			state task.State
			end   func(*task.Task) Move
		}{{task.Executed, mustFail}, {task.Running, mustTimeOut}} {
			one := taskIn(ending.state)
			one.Backoff, one.BackoffFactor, one.BackoffMax = 10, 3, 300
			one.MaxFails, one.MaxTimeouts = 100, 100
			one.Fails, one.Timeouts = before/2, before-before/2
			one.StartAfter = 70
			m := ending.end(one)
			expect.Equal(t, m.To, task.Open, before)
			expect.Compare(t, m.Score.After, ">=", want*0.8, before)
			expect.Compare(t, m.Score.After, "<=", want*1.2, before)
			expect.Equal(t, m.Score.Min, 70, before)
			expect.True(t, slices.Contains(m.Stamp, Stamp{"ready", m.Score}), "after", before, "rounds: the property ready is missing", m.Stamp)
			expect.True(t, strings.HasSuffix(m.Note, fmt.Sprintf("reopened, waits %s s", m.Score.After)), "after", before, "rounds: the note is", m.Note)
			checkRow(t, one, m)
		}
	}
}

func mustFail(t *task.Task) Move {
	t.Current().HasError = true
	m, _ := Settle(t, 111, nil)
	return m
}

func mustTimeOut(t *task.Task) Move {
	m, _ := TimeOut(t)
	return m
}

// A task does not wait if it has no back-off. It also does not wait after a lost or released round, or if it has failed
// for good.
func TestNoBackoff(t *testing.T) {
	for name, m := range map[string]Move{
		"without a back-off": func() Move {
			one := taskIn(task.Executed)
			one.MaxFails = 1
			return mustFail(one)
		}(),
		"failed for good": func() Move {
			one := taskIn(task.Executed)
			one.MaxFails, one.Backoff, one.BackoffMax = 1, 10, 300
			one.Current().Permanent = true
			return mustFail(one)
		}(),
		"lost": func() Move {
			one := taskIn(task.Running)
			one.MaxLosses, one.Backoff, one.BackoffMax = 3, 10, 300
			m, _ := lose(one, task.Running)
			return m
		}(),
		"released": func() Move {
			one := taskIn(task.Running)
			one.Backoff, one.BackoffMax = 10, 300
			m, _ := Release(one, "draining")
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
		one := taskIn(task.Executed)
		one.ID = rapid.Int64Range(1, math.MaxInt64).Draw(t, "id")
		one.Round = rapid.IntRange(0, task.MaxRound).Draw(t, "round")
		one.Fails, one.Timeouts = rapid.IntRange(0, task.MaxCount).Draw(t, "fails"), rapid.IntRange(0, task.MaxCount).Draw(t, "timeouts")
		one.Backoff = task.Seconds(rapid.Float64Range(0, float64(task.MaxBackoff)).Draw(t, "backoff"))
		one.BackoffFactor = rapid.Float64Range(1, task.MaxBackoffFactor).Draw(t, "factor")
		one.BackoffMax = task.Seconds(rapid.Float64Range(1e-6, float64(task.MaxBackoff)).Draw(t, "max"))
		if err := one.Validate(); err != nil {
			t.Fatal(err)
		}
		delay := backoff(one)
		if !(delay >= 0 && delay <= one.BackoffMax*1.2+0.001) || delay != backoff(one) {
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
	for _, change := range []task.Hash{
		{"backoff": "inf", "backoff_max": "inf"},
		{"backoff": "1e11"},
		{"backoff": "0", "backoff_factor": "0"},
		{"backoff": "x"},
		{"keep_finished": "0"},
		{"keep_finished": "0.0000001"},
		{"keep_finished": "x"},
		{"keep_archived": "-1"},
	} {
		d := task.Defaults("p", "http://h/run.sh", "")
		d.MaxFails = 1
		h := task.Hash{}
		for _, f := range d.OpenFields("") {
			h[f.Name] = f.Value
		}
		h["state"], h["0:executed"], h["0:claim"], h["0:exit"], h["0:error"] = "executed", "100", "c", "1", "boom"
		for name, value := range change {
			h[name] = value
		}
		one, err := task.ParseTask(1, h)
		expect.Fails(t, err, "", change, "no error")
		if m, ok := Settle(one, 200, err); !ok || m.To != task.Open || m.Score != (Moment{}) {
			t.Errorf("%v: a failed round leads to %+v", change, m)
		}
		one.MaxFails = 0
		m, _ := Settle(one, 200, err)
		expect.True(t, m.NextDue == noEarlierThan(task.Never), change, "the finished task is due", m.NextDue)
	}
}

// If a task was put off, workers can claim it again only after the delay. The property ready of the task is the end of
// the delay (docs/lifecycle.md, "Put off").
func TestReleaseLater(t *testing.T) {
	one := taskIn(task.Running)
	one.StartAfter = 50
	m, err := ReleaseLater(one, 300, "the licence\nis in use")
	want := Moment{After: 300, Min: 50}
	expect.NoError(t, err)
	expect.Equal(t, m.Verb, VerbRelease)
	expect.Equal(t, m.Score, want)
	expect.True(t, slices.Contains(m.Stamp, Stamp{"ready", want}), m, err)
	checkRow(t, one, m)
	expect.Equal(t, m.Note, "released for 300 s: the licence is in use", "note")
	if m, err := ReleaseLater(one, -1, ""); err != nil || m.Score.After != 1 || m.Note != "released for 1 s: " {
		t.Errorf("a negative delay in a later round: %+v, %v", m, err)
	}
	one.Round = 0
	expect.Equal(t, expect.Result(ReleaseLater(one, 0, "")).Value(t).Score.After, 0, "no delay in the first round")
	one.Round = task.MaxRound
	if _, err := ReleaseLater(one, 300, ""); err != ErrLastRound {
		t.Errorf("in the last round: %v", err)
	}
	for _, state := range task.States { // only a running task can be put off
		_, err := ReleaseLater(taskIn(state), 300, "no licence")
		expect.Equal(t, errors.As(err, new(*StateError)), state != task.Running, state)
	}
}

// If a task was put off and then cancelled, a retry does not wait for the rest of the delay.
func TestRetryForgetsThatATaskWasPutOff(t *testing.T) {
	one := taskIn(task.Expired)
	one.Ready = 500
	m := expect.Result(Reopen(one)).Value(t)
	expect.Equal(t, m.Score, Moment{})
	expect.True(t, slices.Contains(m.Clear, "ready"), m)
	one.Ready = 0
	if m, _ := Reopen(one); slices.Contains(m.Clear, "ready") {
		t.Errorf("a task that was never put off: %+v", m)
	}
}

// A change of the input keeps the delay, and a change of start_after ends it.
func TestChangeOfATaskThatWasPutOff(t *testing.T) {
	one := taskIn(task.Open)
	one.Current().Entered[task.Open], one.Ready = 100, 500
	expect.Equal(t, expect.Result(Change(one, task.Changes{Input: new("2")})).Value(t).Score, momentAt(500))
	m := expect.Result(Change(one, task.Changes{StartAfter: new(task.Time(120).Std())})).Value(t)
	expect.Equal(t, m.Score, momentAt(120))
	expect.True(t, slices.Contains(m.Clear, "ready"), m)
}

// If the worker reports a failure as permanent, the server does not reopen the task, whatever max_fails allows
// (docs/lifecycle.md, "Failed for good").
func TestPermanentFailure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := drawTask(t)
		r := one.Current()
		r.Permanent = true
		now := task.Time(rapid.IntRange(95, 1100).Draw(t, "now"))
		m, ok := Settle(one, now, nil)
		r.Permanent = false
		usual, usually := Settle(one, now, nil)
		if ok != usually || m.Verb != usual.Verb {
			t.Fatalf("with Permanent, the task is settled as %+v; without Permanent, as %+v", m, usual)
		}
		if ok && m.Verb == VerbFail && m.To != task.Failed {
			t.Fatalf("permanent failure %d, with max_fails %d: the task is %s, want failed", one.Fails+1, one.MaxFails, m.To)
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
	one := taskIn(task.Running)
	for _, permanent := range []bool{false, true} {
		m, err := Execute(one, "c", Result{Error: "no such file", Exit: "1", Permanent: permanent})
		got := field(m, "2:permanent")
		expect.NoError(t, err)
		expect.Equal(t, got == "1", permanent)
	}
	h := task.Hash{"state": "executed", "round": "1", "max_fails": "3", "0:permanent": "1", "0:failure": "5", "1:executed": "9", "1:claim": "c", "1:error": "x"}
	retried, _ := task.ParseTask(1, h)
	if m, ok := Settle(retried, 10, nil); !ok || m.To != task.Open {
		t.Errorf("after a retry: %v, %+v", ok, m)
	}
	h["1:permanent"] = "1"
	again, _ := task.ParseTask(1, h)
	if m, ok := Settle(again, 10, nil); !ok || m.To != task.Failed || !strings.HasPrefix(m.Note, "failed for good") {
		t.Errorf("%v, %+v", ok, m)
	}
}
