package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// TestSettle has a case for each rule in docs/lifecycle.md, "What the server decides".
func TestSettle(t *testing.T) {
	for _, c := range []struct {
		name  string
		state task.State
		now   task.Time
		with  func(*task.Task)
		want  task.State // None if there is nothing to settle
		note  string
	}{
		{name: "open, in time", state: task.Open, now: 999},
		{name: "open, overdue", state: task.Open, now: 1000, want: task.Expired, note: "expired"},
		{name: "open, claimed in no time", state: task.Open, now: 500, with: func(t *task.Task) { t.ClaimBefore = 500 }, want: task.Expired, note: "expired"},
		{name: "running, claimed in time", state: task.Running, now: 120, with: func(t *task.Task) { t.ClaimBefore = 111 }},
		{name: "executed, claimed in time", state: task.Executed, now: 130, with: func(t *task.Task) { t.ClaimBefore = 111 }, want: task.Succeeded},
		{name: "running, lost in its last attempt", state: task.Running, now: 130, with: func(t *task.Task) { t.Fails, t.Timeouts, t.MaxLosses, t.MaxAttempts = 1, 1, 3, 3 }, want: task.Failed},
		{name: "running, lost, one attempt left", state: task.Running, now: 130, with: func(t *task.Task) { t.Fails, t.MaxLosses, t.MaxAttempts = t.Fails+1, 3, t.Fails+t.Timeouts+t.Losses+3 }, want: task.Open},
		{name: "executed, failed in its last attempt", state: task.Executed, now: 111, with: func(t *task.Task) { t.Current().HasError = true; t.Losses, t.MaxFails, t.MaxAttempts = 1, 5, 2 }, want: task.Failed},
		{name: "running, in time", state: task.Running, now: 120},
		{name: "running, lease has run out", state: task.Running, now: 130, want: task.Open, note: "lost with its worker w"},
		{name: "running, lost too often", state: task.Running, now: 130, with: func(t *task.Task) { t.Losses, t.MaxLosses = 3, 3 }, want: task.Failed},
		{name: "running, no claim, no lease", state: task.Running, now: 990, with: func(t *task.Task) { t.Current().Claim = "" }},
		{name: "running, no claim, its worker may still report the time-out", state: task.Running, now: 105.9, with: func(t *task.Task) { t.Current().Claim = ""; t.Timeout = 5 }},
		{name: "running, no claim, timed out", state: task.Running, now: 106, with: func(t *task.Task) { t.Current().Claim = ""; t.Timeout = 5 }, want: task.TimedOut},
		{name: "running, no claim, not yet stamped", state: task.Running, now: 106, with: func(t *task.Task) { r := t.Current(); r.Claim = ""; delete(r.Entered, task.Running); t.Timeout = 5 }},
		{name: "running, too long, its worker lives", state: task.Running, now: 121, with: func(t *task.Task) { t.Deadline = 120 }},
		{name: "running, too long, its worker lives and does nothing", state: task.Running, now: 129.5, with: func(t *task.Task) { t.Deadline = 119 }, want: task.TimedOut, note: "timed out"},
		{name: "running, too long, lease has run out", state: task.Running, now: 130, with: func(t *task.Task) { t.Deadline = 125 }, want: task.TimedOut, note: "timed out"},
		{name: "running, too long, tolerated", state: task.Running, now: 131, with: func(t *task.Task) { t.Deadline, t.MaxTimeouts = 120, 2 }, want: task.Open, note: "timed out, reopened"},
		{name: "running, too long too often", state: task.Running, now: 131, with: func(t *task.Task) { t.Deadline, t.Timeouts, t.MaxTimeouts = 120, 2, 2 }, want: task.TimedOut},
		{name: "running, overdue", state: task.Running, now: 1001, want: task.Expired},
		{name: "running, exactly at the end", state: task.Running, now: 1000, with: func(t *task.Task) { t.LeaseUntil = 2000 }},
		{name: "running, overdue, its program ended in time", state: task.Running, now: 1010, with: func(t *task.Task) { t.LeaseUntil, t.Deadline = 2000, 1010 }},
		{name: "running, overdue, its program ended in time, no report", state: task.Running, now: 1011, with: func(t *task.Task) { t.LeaseUntil, t.Deadline = 2000, 1010 }, want: task.Expired},
		{name: "running, overdue, its program ended in time, lease has run out", state: task.Running, now: 1005, with: func(t *task.Task) { t.LeaseUntil, t.Deadline = 1003, 1010 }, want: task.Open, note: "lost with its worker w"},
		{name: "executed, did not fail", state: task.Executed, now: 111, want: task.Succeeded},
		{name: "executed, on time, looked at late", state: task.Executed, now: 5000, want: task.Succeeded},
		{name: "executed, late", state: task.Executed, now: 1002, with: func(t *task.Task) { t.Current().Entered[task.Executed] = 1001 }, want: task.Expired},
		{name: "executed, failed", state: task.Executed, now: 111, with: func(t *task.Task) { t.Current().HasError = true }, want: task.Failed, note: "failed"},
		{name: "executed, failed, tolerated", state: task.Executed, now: 111, with: func(t *task.Task) { t.Current().HasError = true; t.MaxFails = 2 }, want: task.Open, note: "failed, reopened"},
		{name: "executed, failed too often", state: task.Executed, now: 111, with: func(t *task.Task) { t.Current().HasError = true; t.Fails, t.MaxFails = 2, 2 }, want: task.Failed},
		{name: "executed, incomplete result", state: task.Executed, now: 111, with: func(t *task.Task) { t.Current().Committed = false }},
		{name: "succeeded", state: task.Succeeded, now: 5000},
		{name: "archived", state: task.Archived, now: 5000},
	} {
		t.Run(c.name, func(t *testing.T) {
			one := taskIn(c.state)
			if c.with != nil {
				c.with(one)
			}
			m, ok := Settle(one, c.now, nil)
			expect.Equal(t, ok, c.want != task.None, c.want, c.note)
			expect.Equal(t, m.To, c.want, c.note)
			expect.True(t, strings.HasPrefix(m.Note, c.note), ok, "to", m.To, m.Note, "want to", c.want, c.note)
		})
	}
}

func TestSettleFailsInvalidTasks(t *testing.T) {
	one := taskIn(task.Open)
	one.Timeout = -1
	m, ok := Settle(one, 10, one.Validate())
	expect.MustTrue(t, ok, ok, m)
	expect.MustEqual(t, m.To, task.Failed)
	expect.MustEqual(t, m.Verb, VerbReject)
	expect.Contains(t, field(m, "2:error"), "timeout: -1 is not a number of seconds above 0")
}

// If the hosts of workers cannot run a task, workers release it at most three times, once no worker is left that has not
// tried it (docs/lifecycle.md, "Released rounds").
func TestReleaseUnfit(t *testing.T) {
	one := taskIn(task.Running)
	one.Current().Worker, one.NotOn = "gamma", task.ParseNotOn("gamma\t1699999999\nv")
	for i := range maxUnfitHosts {
		m, ok := ReleaseUnfit(one, "no interpreter", 1700000600)
		expect.MustTrue(t, ok, "release while others are left", i, ok, m)
		expect.Equal(t, field(m, "unfit"), "")
		expect.Equal(t, field(m, "not_on"), "v\ngamma\t1700000600", "put off")
		m, ok = ReleaseUnfit(one, "no interpreter", 0)
		expect.MustTrue(t, ok, "release", i, ok, m)
		expect.MustEqual(t, m.To, task.Open, "release", i)
		expect.MustEqual(t, m.Verb, VerbRelease, "release", i)
		expect.MustEqual(t, field(m, "unfit"), fmt.Sprint(i+1), "release", i)
		one.UnfitHosts++
	}
	if m, ok := ReleaseUnfit(one, "no interpreter", 0); ok {
		t.Errorf("released once more: %+v", m)
	}
	_, ok := ReleaseUnfit(one, "no interpreter", 1700000600)
	expect.True(t, ok, "a worker came that has not tried it")
}

// Workers that put a task off push out only each other, and no worker that a user has named.
func TestPutOffsKeepLinesOfUsers(t *testing.T) {
	one := taskIn(task.Running)
	one.NotOn = task.ParseNotOn("user")
	for i := range 2 * maxNotOn {
		one.Current().Worker = fmt.Sprint("w", i)
		m, ok := ReleaseUnfit(one, "no interpreter", 1700000000)
		expect.MustTrue(t, ok, i)
		one.NotOn = task.ParseNotOn(field(m, "not_on"))
	}
	expect.Equal(t, one.NamesNotOn()[0], "user")
	expect.Len(t, one.NotOn, 1+maxNotOn)
	one.Current().Worker = "user"
	m, _ := ReleaseUnfit(one, "no interpreter", 1700000000)
	expect.True(t, slices.Contains(task.ParseNotOn(field(m, "not_on")), task.NotOn{Worker: "user", Until: task.Never}))
}

// A task cannot be released in its last round, because there is no further round.
func TestReleaseInTheLastRound(t *testing.T) {
	one := taskIn(task.Running)
	for i := range task.MaxRound + 1 {
		one.Rounds[i] = &task.Round{}
	}
	for _, c := range []struct {
		round int
		want  error
	}{{task.MaxRound - 1, nil}, {task.MaxRound, ErrLastRound}} {
		one.Round = c.round
		if m, err := Release(one, "draining"); err != c.want {
			t.Errorf("round %d: %+v, %v", c.round, m, err)
		}
		if m, err := Requeue(one, true); err != c.want {
			t.Errorf("round %d, requeued: %+v, %v", c.round, m, err)
		}
		if m, ok := ReleaseUnfit(one, "no interpreter", 0); ok != (c.want == nil) {
			t.Errorf("round %d, unfit: %+v", c.round, m)
		}
	}
	one.MaxLosses, one.Current().Worker = 3, "gamma"
	m, err := lose(one, task.Running)
	got := field(m, "99999:error")
	expect.NoError(t, err)
	expect.Equal(t, got, "lost with its worker in round 99999, the last one that a task can have; the workers: gamma")
}

func field(m Move, name string) string {
	for _, f := range m.Set {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

func TestLostTooOftenNamesTheWorkers(t *testing.T) {
	one := taskIn(task.Running)
	one.Losses, one.MaxLosses = 2, 2
	one.Rounds.At(0).Worker, one.Rounds.At(0).LostAt = "alpha", 5
	one.Rounds.At(1).Worker = "beta" // beta released the task
	one.Current().Worker = "gamma"
	m, _ := Settle(one, 500, nil)
	got := field(m, "2:error")
	expect.Equal(t, m.To, task.Failed)
	expect.Contains(t, got, "lost with its worker 3 times")
	expect.True(t, strings.HasSuffix(got, "alpha, gamma"), "to", m.To, got)
}

func TestHasFailed(t *testing.T) {
	const yes, no = true, false
	for _, c := range []struct {
		exit             string
		stderr           bool
		onStderr, onExit bool
		onAny            bool
	}{
		{"0", no, no, no, no},
		{"0", yes, yes, no, yes},
		{"3", no, no, yes, yes},
		{"3", yes, yes, yes, yes},
		{"signal: killed", no, yes, yes, yes},
		{"", no, no, no, no}, // a worker of the original TDF writes no exit status, so stderr decides
		{"", yes, yes, yes, yes},
	} {
		r := task.Round{Exit: c.exit, HasError: c.stderr}
		got := [3]bool{HasFailed(&r, task.FailOnStderr), HasFailed(&r, task.FailOnExit), HasFailed(&r, task.FailOnAny)}
		want := [3]bool{c.onStderr, c.onExit, c.onAny}
		expect.True(t, got == want, "exit", c.exit, "stderr", c.stderr, got, "want", want)
	}
}

// If a round has failed, its error text is not empty. The error text is the text on stderr or, if stderr is empty, an
// explanation of the failure.
func TestResultIsExplained(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Result{
			Error: rapid.SampledFrom([]string{"", "boom", "\x00\xff"}).Draw(t, "error"),
			Exit:  rapid.SampledFrom([]string{"", "0", "1", "255", "signal: killed"}).Draw(t, "exit"),

			Refused: rapid.Bool().Draw(t, "refused"),
		}
		f := rapid.SampledFrom([]task.FailOn{task.FailOnStderr, task.FailOnExit, task.FailOnAny}).Draw(t, "fail_on")
		text := r.errorText(f)
		if r.Error != "" && text != r.Error {
			t.Fatalf("the text on stderr was changed: %q", text)
		}
		failed := r.Refused || HasFailed((&task.Round{Exit: r.Exit, HasError: r.Error != ""}), f)
		if (text != "") != (failed || r.Error != "") {
			t.Fatalf("failed %v, error %q", failed, text)
		}
	})
}

// A refused round has failed, whatever fail_on is. The Move stores the resource usage of the round and the full lengths
// of its texts.
func TestExecuteRefused(t *testing.T) {
	one := taskIn(task.Running)
	r := Result{Output: "out", OutputBytes: 2000, Exit: "0", Refused: true, Reason: "files/ is gone", Seconds: 3, CPUSeconds: 2, MaxRSS: 4096}
	for _, f := range []task.FailOn{task.FailOnStderr, task.FailOnExit, task.FailOnAny} {
		one.FailOn = f
		m := expect.Result(Execute(one, "claim", r)).Value(t)
		for name, want := range map[string]string{
			task.RoundExit: "", task.RoundError: r.Reason, task.RoundOutputBytes: "2000", task.RoundErrorBytes: "0",
			task.RoundSeconds: "3", task.RoundCPUSeconds: "2", task.RoundMaxRSS: "4096",
		} {
			expect.Equal(t, field(m, task.RoundField(2, name)), want, f, name)
		}
	}
}

func drawTask(t *rapid.T) *task.Task {
	state := rapid.SampledFrom(task.States).Draw(t, "state")
	one := taskIn(state)
	small := rapid.IntRange(0, 4)
	one.Fails, one.MaxFails = small.Draw(t, "fails"), small.Draw(t, "max_fails")
	one.Timeouts, one.MaxTimeouts = small.Draw(t, "timeouts"), small.Draw(t, "max_timeouts")
	one.Losses, one.MaxLosses = small.Draw(t, "losses"), small.Draw(t, "max_losses")
	moments := rapid.SampledFrom([]task.Time{90, 100, 110, 120, 130, 1000, 1001, task.Never})
	one.EndBefore, one.Deadline, one.LeaseUntil = moments.Draw(t, "end"), moments.Draw(t, "deadline"), moments.Draw(t, "lease")
	r := one.Current()
	r.HasError, r.Permanent = rapid.Bool().Draw(t, "stderr"), rapid.Bool().Draw(t, "permanent")
	if state == task.Executed {
		r.Entered[task.Executed] = moments.Filter(func(at task.Time) bool { return at < task.Never }).Draw(t, "executed")
	}
	if rapid.Bool().Draw(t, "original") {
		r.Claim = ""
	}
	return one
}

// held returns the time until which a worker that still collects the output of the task's round holds off the end_before.
func held(t *task.Task) task.Time {
	if t.Current().Claim == "" || t.Deadline == task.Never {
		return 0
	}
	return t.Deadline
}

// For any task at any time, Settle follows the rules of docs/lifecycle.md.
func TestSettleKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := drawTask(t)
		now := task.Time(rapid.IntRange(95, 1100).Draw(t, "now"))
		m, ok := Settle(one, now, nil)
		if !ok {
			over := deadline(one)
			if leaseHolds(one, now) {
				over = over.Add(TimeoutMargin)
			}
			if end := max(one.EndBefore, held(one)); one.State == task.Running && now > min(over, end) {
				t.Fatalf("an overdue task was not settled")
			}
			if one.State == task.Executed {
				t.Fatalf("a complete result was not settled")
			}
			return
		}
		r := one.Current()
		switch m.Verb {
		case VerbExpire:
			late := now >= one.EndBefore && (one.State != task.Running || now > held(one)) || one.State == task.Executed && r.Entered[task.Executed] > one.EndBefore
			if !late {
				t.Fatalf("expired before its time")
			}
		case VerbFail:
			if !r.HasError || r.Entered[task.Executed] > one.EndBefore {
				t.Fatalf("failed, although the round has not failed or was late")
			}
			if (m.To == task.Open) != (one.Fails+1 <= one.MaxFails && !r.Permanent) {
				t.Fatalf("failure %d, with max_fails %d: the task is %s", one.Fails+1, one.MaxFails, m.To)
			}
		case VerbTimeOut:
			if now <= deadline(one) || now > max(one.EndBefore, held(one)) {
				t.Fatalf("timed out at %v, deadline %v", now, deadline(one))
			}
			if (m.To == task.Open) != (one.Timeouts+1 <= one.MaxTimeouts) {
				t.Fatalf("timeout %d, with max_timeouts %d: the task is %s", one.Timeouts+1, one.MaxTimeouts, m.To)
			}
		case VerbLose:
			if r.Claim == "" || now < one.LeaseUntil {
				t.Fatalf("lost before the end of its lease")
			}
			if (m.To == task.Open) != (one.Losses+1 <= one.MaxLosses) {
				t.Fatalf("loss %d, with max_losses %d: the task is %s", one.Losses+1, one.MaxLosses, m.To)
			}
		case VerbSucceed:
			if r.HasError || r.Entered[task.Executed] > one.EndBefore {
				t.Fatalf("succeeded, although the round has failed or was late")
			}
		default:
			t.Fatalf("the server must not %s a task", m.Verb)
		}
	})
}

// Settle returns false at all times before the time that NextDue returns.
func TestNextDueIsEarlyEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := drawTask(t)
		now := task.Time(rapid.IntRange(95, 1100).Draw(t, "now"))
		if _, ok := Settle(one, now, nil); ok {
			return
		}
		look := NextDue(one, now)
		for later := now; later < min(look, 1200); later++ {
			if m, ok := Settle(one, later, nil); ok {
				t.Fatalf("%s at %v, but NextDue is %v", m.Verb, later, look)
			}
		}
	})
}

func FuzzParseTask(f *testing.F) {
	f.Add("round", "1", "1:error", "x")
	f.Add("end_before", "NaN", "timeout", "-inf")
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2 string) {
		h := task.Hash{"state": "running", name1: value1, name2: value2}
		one, err := task.ParseTask(1, h)
		expect.MustTrue(t, one != nil, one, err)
		expect.MustTrue(t, one.Rounds[one.Round] != nil, one, err)
		expect.MustTrue(t, len(one.Rounds) <= len(h)+1, one, err)
		for _, now := range []task.Time{0, 1e9, 1e10} {
			m, ok := Settle(one, now, err)
			if ok {
				expect.MustEqual(t, m.ID, 1)
				expect.MustEqual(t, m.From, one.State)
				expect.MustEqual(t, m.Round, one.Round)
			}
		}
	})
}
