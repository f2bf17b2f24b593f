package redisstate

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

var update = flag.Bool("update", false, "replacement of the golden file by the results of this run")

const goldenLife = "testdata/life.txt"

// Each version of TDF writes the same data to Redis: those that docs/redis.md describes. The test takes tasks through
// the transitions. After each step, the changes in Redis must equal those in the golden file.
func TestRecordedLife(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		ctx, past := t.Context(), tdf.Time(1.2e9)
		var record strings.Builder
		before := world{}
		step := func(name string, errs ...error) {
			must(t, errors.Join(errs...), name)
			after := anonymize(dump(t, s), s)
			fmt.Fprintf(&record, "\n== %s\n%s", name, differences(before, after))
			before = after
		}
		move := func(name string, id int64, decide func(*tdf.Task) (tdf.Move, error)) {
			mustMove(t, s, id, decide)
			step(name)
		}
		settle := func(name string, id int64, values ...any) { // after the values of the task were changed
			must(t, s.Redis.HSet(ctx, s.Keys.Task(id), append(values, "id", id)).Err())
			mustSettle(t, s, id)
			step(name)
		}
		claim := func(name string) Claim {
			c := mustClaim(t, s, 1)[0]
			step(name)
			return c
		}

		source, err := s.PutProgram(ctx, []byte("an archive"))
		step("store a program", err)
		mustOpen(t, s, tdf.Defaults("p", source, `say 'two words' "" ü`))
		step("open with defaults")
		c := claim("claim")
		report := LiveReport{
			Tail: new("so far"), Silent: 3, PID: 77, Progress: new("0.5 half"), Checkpoint: new("seen"),
			Updates: []string{"one", "two"}, FirstUpdate: 1,
		}
		renewal := Renewal{ID: 1, Claim: c.ID, Begun: true, Limit: 90, Until: tdf.Never, Report: report}
		_, err = s.Renew(ctx, 60, renewal)
		step("renew, and report what the program does", err)
		mustExecute(t, s, c, tdf.Result{
			Output: "out\x00\xff", Error: "boom", Exit: "3", Reason: "why", Permanent: true, Started: past, Seconds: 2,
			CPUSeconds: 1.5, MaxRSS: 4096, OutputBytes: 700, ErrorBytes: 900, JSON: `{"n": 1}`, ProgramSHA256: "sum",
			ClearLive: true,
		})
		step("execute")
		settle("fail", 1)
		move("archive", 1, (*tdf.Task).Archive)
		move("retry with changes", 1, func(t *tdf.Task) (tdf.Move, error) {
			c := tdf.Changes{Input: new("again"), MaxFails: new(2), MaxTimeouts: new(1), Backoff: new(time.Hour)}
			return t.ReopenWith(c)
		})
		mustExecute(t, s, claim("claim the next round"), tdf.Result{Error: "boom"})
		settle("fail, and wait", 1)
		move("cancel", 1, (*tdf.Task).Cancel)
		move("retry", 1, (*tdf.Task).Reopen)
		mustChange(t, s, 1, tdf.Changes{Meta: new("mine"), Backoff: new(time.Duration(0))})
		step("change")
		claim("claim a changed task")
		settle("time out", 1, "deadline", past.String())
		claim("claim a task that has timed out")
		settle("lose", 1, "lease_until", past.String())
		claim("claim a lost task")
		move("release", 1, func(t *tdf.Task) (tdf.Move, error) { return t.Release("draining") })
		claim("claim a released task")
		move("release from an unfit host", 1, func(t *tdf.Task) (tdf.Move, error) {
			m, _ := t.ReleaseUnfit("no such file")
			return m, nil
		})
		claim("claim a task that was unfit")
		move("requeue elsewhere", 1, func(t *tdf.Task) (tdf.Move, error) { return t.Requeue(true) })
		settle("expire", 1, "end_before", past.String())
		move("remove", 1, (*tdf.Task).Remove)

		all := tdf.Defaults("p", "", "x")
		all.Timeout, all.StartAfter, all.EndBefore, all.ClaimBefore = 90, 100, 4e9, 4e9
		all.MaxFails, all.MaxTimeouts, all.MaxLosses, all.MaxAttempts, all.FailOn = 1, 2, 4, 5, tdf.FailOnAny
		all.Backoff, all.BackoffFactor, all.BackoffMax = 1, 3, 60
		all.KeepFinished, all.KeepArchived, all.KeepOutputs = 1000, 2000, 500
		all.Queue, all.Priority, all.Tags, all.Group, all.ByGroup = "q", 5, []string{"a", "b"}, "g", true
		all.LimitKey, all.Unique, all.UniqueUntil = "db", "u", tdf.UntilArchived
		all.Meta, all.Owner, all.CorrelationID = "m", "o", "c"
		mustOpen(t, s, all)
		step("open with all properties")
		after := define("after")
		after.After = &tdf.Dependencies{Tasks: []int64{2}, Group: "g"}
		mustOpen(t, s, after)
		step("open a task that waits", s.CloseGroup(ctx, "g"))
		_, err = s.LinkWaiting(ctx)
		step("link the waiting task", err)
		move("cancel the task for which it waits", 2, (*tdf.Task).Cancel)
		_, err = s.HandleEndings(ctx)
		step("the waiting task learns of the end", err)

		step("set a limit", s.SetLimit(ctx, "db", tdf.Limit{AtMost: 1, Starts: 9, Per: 60}))
		mustOpen(t, s, limitedBy("db"), limitedBy("db"))
		claim("claim tasks with a limit")
		_, err = s.Pause(ctx, "user", tdf.Pausable{Queue: "q"})
		step("pause", err)
		step("change a setting", s.ChangeSetting(ctx, "max_tasks", "9"))
		w := WorkerInfo{
			Name: "w", Host: "h", PID: 17, Process: "p", Version: "v", Lease: 3600, State: "working", Slots: 2,
			Runs: []int64{3, 4}, Pauses: []Pause{{Program: "p", For: 7, Why: "it fails"}},
			Offer: tdf.Offer{Tags: []string{"gpu"}, Handlers: []string{"p"}},
		}
		step("a worker and a server report", took(s.TakeName(ctx, w, PriorOwner{})), signed(s.WorkerHeartbeat(ctx, w)),
			s.ServerHeartbeat(ctx, "s", expect.Result(s.Now(ctx)).Value(t)), s.NoteSuccesses(ctx, "w", "p"))
		_, err = s.Drain(ctx, "w", "user")
		step("drain the worker", err, s.Follow(ctx, 1))

		if *update && !onEmbedded(t) {
			must(t, os.MkdirAll("testdata", 0o755))
			must(t, os.WriteFile(goldenLife, []byte(record.String()), 0o644))
		}
		want := strings.Split(string(expect.Result(os.ReadFile(goldenLife)).Value(t)), "\n")
		diff := cmp.Diff(want, strings.Split(record.String(), "\n"))
		expect.Equal(t, diff, "", "-want +got; for an intended change: go test ./redisstate -run RecordedLife -update")
		mustBeSound(t, s)
	})
}

// differences returns the new lines of each value in Redis, and with a - the names of removed keys and properties.
func differences(before, after world) string {
	var all strings.Builder
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if _, ok := after[key]; !ok {
			fmt.Fprintf(&all, "-%s\n", key)
			continue
		}
		for line := range strings.SplitSeq(before[key], "\n") {
			if name, _, is := strings.Cut(line, "="); is && !strings.Contains("\n"+after[key], "\n"+name+"=") {
				fmt.Fprintf(&all, "-%s %s\n", key, name)
			}
		}
		for line := range strings.SplitSeq(after[key], "\n") {
			if !slices.Contains(strings.Split(before[key], "\n"), line) {
				fmt.Fprintf(&all, "%s %q\n", key, line)
			}
		}
	}
	return all.String()
}

func is(t *testing.T, s *Store, want world) {
	t.Helper()
	expect.MustEqual(t, changed(t, want, dump(t, s)), "", "Redis differs (-want +got")
}

// put opens a task, moves it to a state, and returns its id.
func put(t *testing.T, s *Store, state tdf.State) int64 {
	t.Helper()
	d := define("x")
	if state == tdf.TimedOut {
		d.Timeout = 1e-6
	}
	id := mustOpen(t, s, d)[0]
	if state == tdf.Expired {
		mustMove(t, s, id, (*tdf.Task).Cancel)
	}
	if state == tdf.Open || state == tdf.Expired {
		return id
	}
	c := mustClaim(t, s, 1)[0]
	switch state {
	case tdf.Running:
		return id
	case tdf.TimedOut:
		m, err := c.Task.TimeOut()
		mustApply(t, s, m, err)
		return id
	}
	result := tdf.Result{Output: "o", Exit: "0"}
	if state == tdf.Failed {
		result.Error = "e"
	}
	mustExecute(t, s, c, result)
	if state == tdf.Executed {
		return id
	}
	mustSettle(t, s, id)
	if state == tdf.Archived {
		mustMove(t, s, id, (*tdf.Task).Archive)
	}
	return id
}

// A move succeeds only if the task is in the expected state and round. Otherwise, it changes nothing and returns the task's state.
func TestMovesAreFenced(t *testing.T) {
	s := newStore(t)
	for _, state := range slices.Backward(tdf.States) { // the open task comes last, because the claims for other states would claim it
		id := put(t, s, state)
		expect.MustEqual(t, task(t, s, id).State, state, "put made the task")
		var moves []tdf.Move
		for _, from := range tdf.States {
			for _, to := range tdf.States {
				for _, round := range []int{0, 1} {
					if from != state || round != 0 {
						moves = append(moves, tdf.Move{ID: id, Verb: "test", From: from, To: to, Round: round, Next: round})
					}
				}
			}
		}
		if state == tdf.Running {
			moves = append(moves, tdf.Move{ID: id, From: state, To: tdf.Executed, Claim: "another"}, tdf.Move{ID: id, From: state, To: tdf.TimedOut, Due: "12.5"})
		}
		refused(t, s, state, moves...)
		refused(t, s, tdf.None, tdf.Move{ID: id + 1000, From: state, To: tdf.Archived})
	}
	mustBeSound(t, s)
}

// refused checks that Redis refuses each of the moves, because the task is in the given state.
func refused(t *testing.T, s *Store, state tdf.State, moves ...tdf.Move) {
	t.Helper()
	before := dump(t, s)
	for _, m := range moves {
		outcomes := expect.Result(s.Apply(t.Context(), "test", Unit{Moves: []tdf.Move{m}, Open: []tdf.Properties{define("follow-up")}})).Value(t)
		e, ok := outcomes[0].Err.(*tdf.StateError)
		expect.MustTrue(t, ok, m, "on a", state, "task", outcomes[0].Err)
		expect.Equal(t, e.State, state)
		expect.Equal(t, e.ID, m.ID, state)
	}
	expect.Equal(t, changed(t, before, dump(t, s)), "", "refused moves of a", state, "task changed Redis")
}

func TestUnitsAreAllOrNothingAndIndependent(t *testing.T) {
	s := newStore(t)
	a, b, c := put(t, s, tdf.Succeeded), put(t, s, tdf.Succeeded), put(t, s, tdf.Open)
	archive := func(id int64) tdf.Move {
		return tdf.Move{ID: id, Verb: tdf.VerbArchive, From: tdf.Succeeded, To: tdf.Archived, Set: []tdf.Field{{Name: "state", Value: "archived"}}}
	}
	outcomes, err := s.Apply(t.Context(), "manager",
		Unit{Moves: []tdf.Move{archive(a), archive(c)}, Open: []tdf.Properties{define("never")}},
		Unit{Moves: []tdf.Move{archive(b)}, Open: []tdf.Properties{define("1"), define("2")}},
	)
	expect.NoError(t, err)
	expect.MustTrue(t, outcomes[0].Err != nil, outcomes, err)
	expect.NoError(t, outcomes[1].Err)
	got := outcomes[1].IDs
	expect.MustLen(t, got, 2)
	expect.MustEqual(t, got[0], 4)
	expect.Equal(t, got[1], 5)
	expect.Equal(t, task(t, s, a).State, tdf.Succeeded, "the refused unit changed Redis, or the other unit did not change it")
	expect.Equal(t, task(t, s, b).State, tdf.Archived, "the refused unit changed Redis, or the other unit did not change it")
	mustBeSound(t, s)
}

// If a worker reports a result late, Redis still stores the end of the program as the time at which the task was
// executed.
func TestExecutedAtTheEndOfTheProgram(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("x"))
	c := expect.Result(s.Claim(t.Context(), ClaimRequest{Worker: "w", Most: 1, Lease: 60})).Value(t)
	mustExecute(t, s, c.Claims[0], tdf.Result{Exit: "0", Started: c.Now, Seconds: 1e-6})
	got := task(t, s, 1).Current().Entered
	want := c.Now.Add(1e-6)
	expect.True(t, got[tdf.Executed].String() == want.String(), "the stored time is", got[tdf.Executed], "but the program ended at", want)
}

func TestLogKeepsFirstAndLastLines(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		id := mustOpen(t, s, define("x"))[0]
		for range 70 {
			mustMove(t, s, id, (*tdf.Task).Cancel)
			mustMove(t, s, id, (*tdf.Task).Reopen)
		}
		lines := strings.Split(task(t, s, id).Log, "\n")
		expect.MustLen(t, lines, 100, "lines")
		rounds := 0
		for _, line := range lines[10:] {
			if moments.ReplaceAllString(line, "T") == "T test: reopened by hand" {
				rounds++
			}
		}
		expect.Equal(t, moments.ReplaceAllString(lines[0], "T"), "T manager: open", rounds, "of the last 90 lines are about a reopening")
		expect.Equal(t, rounds, 45)
	})
}
