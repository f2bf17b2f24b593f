package redisstate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// After each step of a task's life, Redis contains exactly the data that docs/redis.md describes.
func TestWholeStateOfALife(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		ns := s.Keys.Namespace()
		base := "0:open=T\nend_before=inf\nfails=0\nid=1\ninput=1 2\n"
		rest := "max_fails=1\nmax_timeouts=0\nnamespace=" + ns + "\nprogram=p\n"
		tail := "source=rsync:/p/run.sh\nstart_after=0\n"
		d := define("1 2")
		d.MaxFails = 1

		mustOpen(t, s, d)
		is(t, s, world{
			"schema": "2", "task_id": "1", "open": "1@T", "wake:open": "1",
			"task:1": base + "log=T manager: open\n" + rest + "round=0\n" + tail + "state=open\ntimeout=inf\ntimeouts=0",
		})

		c := mustClaim(t, s, 1)[0]
		running := "0:claim=" + c.ID + "\n0:open=T\n0:running=T\n0:worker=w\ndeadline=inf\nend_before=inf\nfails=0\nid=1\ninput=1 2\nlease=3600\nlease_until=T\n"
		is(t, s, world{
			"schema": "2", "task_id": "1", "running": "1@T", "due": "1@T", "wake:open": "1",
			"task:1": running + "log=T manager: open\nT w: running\n" + rest + "round=0\n" + tail + "state=running\ntimeout=inf\ntimeouts=0",
		})

		mustExecute(t, s, c, rules.Result{Output: "out\x00\xff", Error: "boom", Exit: "3"})
		executed := "0:claim=" + c.ID + "\n0:error=boom\n0:error_bytes=4\n0:executed=T\n0:exit=3\n0:open=T\n0:output=out\x00\xff\n0:output_bytes=5\n0:running=T\n0:worker=w\n" +
			"deadline=inf\nend_before=inf\n"
		is(t, s, world{
			"schema": "2", "task_id": "1", "executed": "1@T", "due": "1@T", "wake:open": "1", "wake:server": "1",
			"task:1": executed + "fails=0\nid=1\ninput=1 2\nlease=3600\nlease_until=T\nlog=T manager: open\nT w: running\nT w: executed\n" +
				rest + "round=0\n" + tail + "state=executed\ntimeout=inf\ntimeouts=0",
		})

		mustSettle(t, s, 1)
		is(t, s, world{
			"schema": "2", "task_id": "1", "open": "1@T", "wake:open": "1 1", "wake:server": "1",
			"task:1": "0:claim=" + c.ID + "\n0:error=boom\n0:error_bytes=4\n0:executed=T\n0:exit=3\n0:failure=T\n0:open=T\n0:output=out\x00\xff\n0:output_bytes=5\n0:running=T\n0:worker=w\n" +
				"1:open=T\ndeadline=inf\nend_before=inf\nfails=1\nid=1\ninput=1 2\nlease=3600\nlease_until=T\n" +
				"log=T manager: open\nT w: running\nT w: executed\nT test: failed, reopened\n" +
				rest + "round=1\n" + tail + "state=open\ntimeout=inf\ntimeouts=0",
		})
		mustBeSound(t, s)
	})
}

func is(t *testing.T, s *redisstate.Store, want world) {
	t.Helper()
	expect.MustEqual(t, changed(t, want, dump(t, s)), "", "Redis differs (-want +got")
}

// put opens a task, moves it to a state, and returns its id.
func put(t *testing.T, s *redisstate.Store, state task.State) int64 {
	t.Helper()
	d := define("x")
	if state == task.TimedOut {
		d.Timeout = 1e-6
	}
	id := mustOpen(t, s, d)[0]
	if state == task.Expired {
		mustMove(t, s, id, rules.Cancel)
	}
	if state == task.Open || state == task.Expired {
		return id
	}
	c := mustClaim(t, s, 1)[0]
	switch state {
	case task.Running:
		return id
	case task.TimedOut:
		m, err := rules.TimeOut(c.Task)
		mustApply(t, s, m, err)
		return id
	}
	result := rules.Result{Output: "o", Exit: "0"}
	if state == task.Failed {
		result.Error = "e"
	}
	mustExecute(t, s, c, result)
	if state == task.Executed {
		return id
	}
	mustSettle(t, s, id)
	if state == task.Archived {
		mustMove(t, s, id, rules.Archive)
	}
	return id
}

// A move succeeds only if the task is in the expected state and round. Otherwise, it changes nothing and returns the task's state.
func TestMovesAreFenced(t *testing.T) {
	s := newStore(t)
	for _, state := range slices.Backward(task.States) { // the open task comes last, because the claims for other states would claim it
		id := put(t, s, state)
		expect.MustEqual(t, read(t, s, id).State, state, "put made the task")
		var moves []rules.Move
		for _, from := range task.States {
			for _, to := range task.States {
				for _, round := range []int{0, 1} {
					if from != state || round != 0 {
						moves = append(moves, rules.Move{ID: id, Verb: "test", From: from, To: to, Round: round, Next: round})
					}
				}
			}
		}
		if state == task.Running {
			moves = append(moves, rules.Move{ID: id, From: state, To: task.Executed, Claim: "another"}, rules.Move{ID: id, From: state, To: task.TimedOut, Due: "12.5"})
		}
		refused(t, s, state, moves...)
		refused(t, s, task.None, rules.Move{ID: id + 1000, From: state, To: task.Archived})
	}
	mustBeSound(t, s)
}

// refused checks that Redis refuses each of the moves, because the task is in the given state.
func refused(t *testing.T, s *redisstate.Store, state task.State, moves ...rules.Move) {
	t.Helper()
	before := dump(t, s)
	for _, m := range moves {
		outcomes := expect.Result(s.Apply(t.Context(), "test", redisstate.Unit{Moves: []rules.Move{m}, Open: []task.Properties{define("follow-up")}})).Value(t)
		e, ok := outcomes[0].Err.(*rules.StateError)
		expect.MustTrue(t, ok, m, "on a", state, "task", outcomes[0].Err)
		expect.Equal(t, e.State, state)
		expect.Equal(t, e.ID, m.ID, state)
	}
	expect.Equal(t, changed(t, before, dump(t, s)), "", "refused moves of a", state, "task changed Redis")
}

func TestUnitsAreAllOrNothingAndIndependent(t *testing.T) {
	s := newStore(t)
	a, b, c := put(t, s, task.Succeeded), put(t, s, task.Succeeded), put(t, s, task.Open)
	archive := func(id int64) rules.Move {
		return rules.Move{ID: id, Verb: rules.VerbArchive, From: task.Succeeded, To: task.Archived, Set: []task.Field{{Name: "state", Value: "archived"}}}
	}
	outcomes, err := s.Apply(t.Context(), "manager",
		redisstate.Unit{Moves: []rules.Move{archive(a), archive(c)}, Open: []task.Properties{define("never")}},
		redisstate.Unit{Moves: []rules.Move{archive(b)}, Open: []task.Properties{define("1"), define("2")}},
	)
	expect.NoError(t, err)
	expect.MustTrue(t, outcomes[0].Err != nil, outcomes, err)
	expect.NoError(t, outcomes[1].Err)
	got := outcomes[1].IDs
	expect.MustLen(t, got, 2)
	expect.MustEqual(t, got[0], 4)
	expect.Equal(t, got[1], 5)
	expect.Equal(t, read(t, s, a).State, task.Succeeded, "the refused unit changed Redis, or the other unit did not change it")
	expect.Equal(t, read(t, s, b).State, task.Archived, "the refused unit changed Redis, or the other unit did not change it")
	mustBeSound(t, s)
}

// If a worker reports a result late, Redis still stores the end of the program as the time at which the task was
// executed.
func TestExecutedAtTheEndOfTheProgram(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("x"))
	c := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 60})).Value(t)
	mustExecute(t, s, c.Claims[0], rules.Result{Exit: "0", Started: c.Now, Seconds: 1e-6})
	got := read(t, s, 1).Current().Entered
	want := c.Now.Add(1e-6)
	expect.True(t, got[task.Executed].String() == want.String(), "the stored time is", got[task.Executed], "but the program ended at", want)
}

func TestLogKeepsFirstAndLastLines(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		id := mustOpen(t, s, define("x"))[0]
		for range 70 {
			mustMove(t, s, id, rules.Cancel)
			mustMove(t, s, id, rules.Reopen)
		}
		lines := strings.Split(read(t, s, id).Log, "\n")
		expect.MustLen(t, lines, 100, "lines")
		rounds := 0
		for _, line := range lines[10:] {
			if conntest.Moments.ReplaceAllString(line, "T") == "T test: reopened by hand" {
				rounds++
			}
		}
		expect.Equal(t, conntest.Moments.ReplaceAllString(lines[0], "T"), "T manager: open", rounds, "of the last 90 lines are about a reopening")
		expect.Equal(t, rounds, 45)
	})
}
