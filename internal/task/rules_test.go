package task

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/expect"
)

// TestSettle has a case for each rule in docs/lifecycle.md, "What the server decides".
func TestSettle(t *testing.T) {
	for _, c := range []struct {
		name  string
		state State
		now   Time
		with  func(*Task)
		want  State // None if there is nothing to settle
		note  string
	}{
		{name: "open, in time", state: Open, now: 999},
		{name: "open, overdue", state: Open, now: 1000, want: Expired, note: "expired"},
		{name: "open, claimed in no time", state: Open, now: 500, with: func(t *Task) { t.ClaimBefore = 500 }, want: Expired, note: "expired"},
		{name: "running, claimed in time", state: Running, now: 120, with: func(t *Task) { t.ClaimBefore = 111 }},
		{name: "executed, claimed in time", state: Executed, now: 130, with: func(t *Task) { t.ClaimBefore = 111 }, want: Succeeded},
		{name: "running, lost in its last attempt", state: Running, now: 130, with: func(t *Task) { t.Fails, t.Timeouts, t.MaxLosses, t.MaxAttempts = 1, 1, 3, 3 }, want: Failed},
		{name: "running, lost, one attempt left", state: Running, now: 130, with: func(t *Task) { t.Fails, t.MaxLosses, t.MaxAttempts = t.Fails+1, 3, t.Fails+t.Timeouts+t.Losses+3 }, want: Open},
		{name: "executed, failed in its last attempt", state: Executed, now: 111, with: func(t *Task) { t.Current().HasError = true; t.Losses, t.MaxFails, t.MaxAttempts = 1, 5, 2 }, want: Failed},
		{name: "running, in time", state: Running, now: 120},
		{name: "running, lease has run out", state: Running, now: 130, want: Open, note: "lost with its worker w"},
		{name: "running, lost too often", state: Running, now: 130, with: func(t *Task) { t.Losses, t.MaxLosses = 3, 3 }, want: Failed},
		{name: "running, no claim, no lease", state: Running, now: 990, with: func(t *Task) { t.Current().Claim = "" }},
		{name: "running, no claim, its worker may still report the time-out", state: Running, now: 105.9, with: func(t *Task) { t.Current().Claim = ""; t.Timeout = 5 }},
		{name: "running, no claim, timed out", state: Running, now: 106, with: func(t *Task) { t.Current().Claim = ""; t.Timeout = 5 }, want: TimedOut},
		{name: "running, no claim, not yet stamped", state: Running, now: 106, with: func(t *Task) { r := t.Current(); r.Claim = ""; delete(r.Entered, Running); t.Timeout = 5 }},
		{name: "running, too long, its worker lives", state: Running, now: 121, with: func(t *Task) { t.Deadline = 120 }},
		{name: "running, too long, its worker lives and does nothing", state: Running, now: 129.5, with: func(t *Task) { t.Deadline = 119 }, want: TimedOut, note: "timed out"},
		{name: "running, too long, lease has run out", state: Running, now: 130, with: func(t *Task) { t.Deadline = 125 }, want: TimedOut, note: "timed out"},
		{name: "running, too long, tolerated", state: Running, now: 131, with: func(t *Task) { t.Deadline, t.MaxTimeouts = 120, 2 }, want: Open, note: "timed out, reopened"},
		{name: "running, too long too often", state: Running, now: 131, with: func(t *Task) { t.Deadline, t.Timeouts, t.MaxTimeouts = 120, 2, 2 }, want: TimedOut},
		{name: "running, overdue", state: Running, now: 1001, want: Expired},
		{name: "running, exactly at the end", state: Running, now: 1000, with: func(t *Task) { t.LeaseUntil = 2000 }},
		{name: "running, overdue, its program ended in time", state: Running, now: 1010, with: func(t *Task) { t.LeaseUntil, t.Deadline = 2000, 1010 }},
		{name: "running, overdue, its program ended in time, no report", state: Running, now: 1011, with: func(t *Task) { t.LeaseUntil, t.Deadline = 2000, 1010 }, want: Expired},
		{name: "running, overdue, its program ended in time, lease has run out", state: Running, now: 1005, with: func(t *Task) { t.LeaseUntil, t.Deadline = 1003, 1010 }, want: Open, note: "lost with its worker w"},
		{name: "executed, did not fail", state: Executed, now: 111, want: Succeeded},
		{name: "executed, on time, looked at late", state: Executed, now: 5000, want: Succeeded},
		{name: "executed, late", state: Executed, now: 1002, with: func(t *Task) { t.Current().Entered[Executed] = 1001 }, want: Expired},
		{name: "executed, failed", state: Executed, now: 111, with: func(t *Task) { t.Current().HasError = true }, want: Failed, note: "failed"},
		{name: "executed, failed, tolerated", state: Executed, now: 111, with: func(t *Task) { t.Current().HasError = true; t.MaxFails = 2 }, want: Open, note: "failed, reopened"},
		{name: "executed, failed too often", state: Executed, now: 111, with: func(t *Task) { t.Current().HasError = true; t.Fails, t.MaxFails = 2, 2 }, want: Failed},
		{name: "executed, incomplete result", state: Executed, now: 111, with: func(t *Task) { t.Current().Committed = false }},
		{name: "succeeded", state: Succeeded, now: 5000},
		{name: "archived", state: Archived, now: 5000},
	} {
		t.Run(c.name, func(t *testing.T) {
			task := taskIn(c.state)
			if c.with != nil {
				c.with(task)
			}
			m, ok := task.Settle(c.now, nil)
			expect.Equal(t, ok, c.want != None, c.want, c.note)
			expect.Equal(t, m.To, c.want, c.note)
			expect.True(t, strings.HasPrefix(m.Note, c.note), ok, "to", m.To, m.Note, "want to", c.want, c.note)
		})
	}
}

func TestSettleFailsInvalidTasks(t *testing.T) {
	task := taskIn(Open)
	task.Timeout = -1
	m, ok := task.Settle(10, task.Validate())
	expect.MustTrue(t, ok, ok, m)
	expect.MustEqual(t, m.To, Failed)
	expect.MustEqual(t, m.Verb, VerbReject)
	expect.Contains(t, field(m, "2:error"), "timeout: -1 is not a number of seconds above 0")
}

// If the hosts of workers cannot run a task, workers release it at most three times, once no worker is left that has not
// tried it (docs/lifecycle.md, "Released rounds").
func TestReleaseUnfit(t *testing.T) {
	task := taskIn(Running)
	task.Current().Worker, task.NotOn = "gamma", parseNotOn("gamma\t1699999999\nv")
	for i := range maxUnfitHosts {
		m, ok := task.ReleaseUnfit("no interpreter", 1700000600)
		expect.MustTrue(t, ok, "release while others are left", i, ok, m)
		expect.Equal(t, field(m, "unfit"), "")
		expect.Equal(t, field(m, "not_on"), "v\ngamma\t1700000600", "put off")
		m, ok = task.ReleaseUnfit("no interpreter", 0)
		expect.MustTrue(t, ok, "release", i, ok, m)
		expect.MustEqual(t, m.To, Open, "release", i)
		expect.MustEqual(t, m.Verb, VerbRelease, "release", i)
		expect.MustEqual(t, field(m, "unfit"), fmt.Sprint(i+1), "release", i)
		task.UnfitHosts++
	}
	if m, ok := task.ReleaseUnfit("no interpreter", 0); ok {
		t.Errorf("released once more: %+v", m)
	}
	_, ok := task.ReleaseUnfit("no interpreter", 1700000600)
	expect.True(t, ok, "a worker came that has not tried it")
}

// Workers that put a task off push out only each other, and no worker that a user has named.
func TestPutOffsKeepLinesOfUsers(t *testing.T) {
	task := taskIn(Running)
	task.NotOn = parseNotOn("user")
	for i := range 2 * maxNotOn {
		task.Current().Worker = fmt.Sprint("w", i)
		m, ok := task.ReleaseUnfit("no interpreter", 1700000000)
		expect.MustTrue(t, ok, i)
		task.NotOn = parseNotOn(field(m, "not_on"))
	}
	expect.Equal(t, task.NamesNotOn()[0], "user")
	expect.Len(t, task.NotOn, 1+maxNotOn)
	task.Current().Worker = "user"
	m, _ := task.ReleaseUnfit("no interpreter", 1700000000)
	expect.True(t, slices.Contains(parseNotOn(field(m, "not_on")), NotOn{"user", Never}))
}

// A task cannot be released in its last round, because there is no further round.
func TestReleaseInTheLastRound(t *testing.T) {
	task := taskIn(Running)
	for i := range MaxRound + 1 {
		task.Rounds[i] = &Round{}
	}
	for _, c := range []struct {
		round int
		want  error
	}{{MaxRound - 1, nil}, {MaxRound, ErrLastRound}} {
		task.Round = c.round
		if m, err := task.Release("draining"); err != c.want {
			t.Errorf("round %d: %+v, %v", c.round, m, err)
		}
		if m, err := task.Requeue(true); err != c.want {
			t.Errorf("round %d, requeued: %+v, %v", c.round, m, err)
		}
		if m, ok := task.ReleaseUnfit("no interpreter", 0); ok != (c.want == nil) {
			t.Errorf("round %d, unfit: %+v", c.round, m)
		}
	}
	task.MaxLosses, task.Current().Worker = 3, "gamma"
	m, err := task.lose(Running)
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
	task := taskIn(Running)
	task.Losses, task.MaxLosses = 2, 2
	task.Rounds.At(0).Worker, task.Rounds.At(0).LostAt = "alpha", 5
	task.Rounds.At(1).Worker = "beta" // beta released the task
	task.Current().Worker = "gamma"
	m, _ := task.Settle(500, nil)
	got := field(m, "2:error")
	expect.Equal(t, m.To, Failed)
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
		r := Round{Exit: c.exit, HasError: c.stderr}
		got := [3]bool{r.HasFailed(FailOnStderr), r.HasFailed(FailOnExit), r.HasFailed(FailOnAny)}
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
		f := rapid.SampledFrom([]FailOn{FailOnStderr, FailOnExit, FailOnAny}).Draw(t, "fail_on")
		text := r.errorText(f)
		if r.Error != "" && text != r.Error {
			t.Fatalf("the text on stderr was changed: %q", text)
		}
		failed := r.Refused || (&Round{Exit: r.Exit, HasError: r.Error != ""}).HasFailed(f)
		if (text != "") != (failed || r.Error != "") {
			t.Fatalf("failed %v, error %q", failed, text)
		}
	})
}

// A refused round has failed, whatever fail_on is. The Move stores the resource usage of the round and the full lengths
// of its texts.
func TestExecuteRefused(t *testing.T) {
	task := taskIn(Running)
	r := Result{Output: "out", OutputBytes: 2000, Exit: "0", Refused: true, Reason: "files/ is gone", Seconds: 3, CPUSeconds: 2, MaxRSS: 4096}
	for _, f := range []FailOn{FailOnStderr, FailOnExit, FailOnAny} {
		task.FailOn = f
		m := expect.Result(task.Execute("claim", r)).Value(t)
		for name, want := range map[string]string{
			RoundExit: "", RoundError: r.Reason, roundOutputBytes: "2000", roundErrorBytes: "0",
			roundSeconds: "3", roundCPUSeconds: "2", roundMaxRSS: "4096",
		} {
			expect.Equal(t, field(m, RoundField(2, name)), want, f, name)
		}
	}
}

func drawTask(t *rapid.T) *Task {
	state := rapid.SampledFrom(States).Draw(t, "state")
	task := taskIn(state)
	small := rapid.IntRange(0, 4)
	task.Fails, task.MaxFails = small.Draw(t, "fails"), small.Draw(t, "max_fails")
	task.Timeouts, task.MaxTimeouts = small.Draw(t, "timeouts"), small.Draw(t, "max_timeouts")
	task.Losses, task.MaxLosses = small.Draw(t, "losses"), small.Draw(t, "max_losses")
	moments := rapid.SampledFrom([]Time{90, 100, 110, 120, 130, 1000, 1001, Never})
	task.EndBefore, task.Deadline, task.LeaseUntil = moments.Draw(t, "end"), moments.Draw(t, "deadline"), moments.Draw(t, "lease")
	r := task.Current()
	r.HasError, r.Permanent = rapid.Bool().Draw(t, "stderr"), rapid.Bool().Draw(t, "permanent")
	if state == Executed {
		r.Entered[Executed] = moments.Filter(func(at Time) bool { return at < Never }).Draw(t, "executed")
	}
	if rapid.Bool().Draw(t, "original") {
		r.Claim = ""
	}
	return task
}

// held returns the time until which a worker that still collects the output of the task's round holds off the end_before.
func held(t *Task) Time {
	if t.Current().Claim == "" || t.Deadline == Never {
		return 0
	}
	return t.Deadline
}

// For any task at any time, Settle follows the rules of docs/lifecycle.md.
func TestSettleKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		task := drawTask(t)
		now := Time(rapid.IntRange(95, 1100).Draw(t, "now"))
		m, ok := task.Settle(now, nil)
		if !ok {
			over := task.deadline()
			if task.leaseHolds(now) {
				over = over.Add(TimeoutMargin)
			}
			if end := max(task.EndBefore, held(task)); task.State == Running && now > min(over, end) {
				t.Fatalf("an overdue task was not settled")
			}
			if task.State == Executed {
				t.Fatalf("a complete result was not settled")
			}
			return
		}
		r := task.Current()
		switch m.Verb {
		case VerbExpire:
			late := now >= task.EndBefore && (task.State != Running || now > held(task)) || task.State == Executed && r.Entered[Executed] > task.EndBefore
			if !late {
				t.Fatalf("expired before its time")
			}
		case VerbFail:
			if !r.HasError || r.Entered[Executed] > task.EndBefore {
				t.Fatalf("failed, although the round has not failed or was late")
			}
			if (m.To == Open) != (task.Fails+1 <= task.MaxFails && !r.Permanent) {
				t.Fatalf("failure %d, with max_fails %d: the task is %s", task.Fails+1, task.MaxFails, m.To)
			}
		case VerbTimeOut:
			if now <= task.deadline() || now > max(task.EndBefore, held(task)) {
				t.Fatalf("timed out at %v, deadline %v", now, task.deadline())
			}
			if (m.To == Open) != (task.Timeouts+1 <= task.MaxTimeouts) {
				t.Fatalf("timeout %d, with max_timeouts %d: the task is %s", task.Timeouts+1, task.MaxTimeouts, m.To)
			}
		case VerbLose:
			if r.Claim == "" || now < task.LeaseUntil {
				t.Fatalf("lost before the end of its lease")
			}
			if (m.To == Open) != (task.Losses+1 <= task.MaxLosses) {
				t.Fatalf("loss %d, with max_losses %d: the task is %s", task.Losses+1, task.MaxLosses, m.To)
			}
		case VerbSucceed:
			if r.HasError || r.Entered[Executed] > task.EndBefore {
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
		task := drawTask(t)
		now := Time(rapid.IntRange(95, 1100).Draw(t, "now"))
		if _, ok := task.Settle(now, nil); ok {
			return
		}
		look := task.NextDue(now)
		for later := now; later < min(look, 1200); later++ {
			if m, ok := task.Settle(later, nil); ok {
				t.Fatalf("%s at %v, but NextDue is %v", m.Verb, later, look)
			}
		}
	})
}
