package redisstate_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
)

// archiveAsOriginal archives finished tasks as a manager of the original TDF does: it moves the ids, and leaves the states.
func archiveAsOriginal(t testing.TB, s *redisstate.Store, ids ...int64) {
	t.Helper()
	for _, id := range ids {
		ctx, member := t.Context(), strconv.FormatInt(id, 10)
		state := task.State(s.Conn.Redis.HGet(ctx, s.Keys.Task(id), "state").Val())
		now := expect.Result(s.Now(ctx)).Value(t)
		expect.MustEqual(t, s.Conn.Redis.ZRem(ctx, s.Keys.List(state), member).Val(), 1, "task", id, "is not in", state)
		must(t, s.Conn.Redis.ZAdd(ctx, s.Keys.List(task.Archived), redis.Z{Score: float64(now), Member: member}).Err())
	}
}

// A task in the list archived is archived for every reader, although a manager of the original TDF has left its state.
func TestTaskArchivedByOriginalIsReadAsArchived(t *testing.T) {
	s := newStore(t)
	done, left := put(t, s, task.Failed), put(t, s, task.Failed)
	archiveAsOriginal(t, s, done)
	for _, fields := range []redisstate.Fields{redisstate.Head, redisstate.Facts, redisstate.Rules, redisstate.Whole} {
		stored, err := s.Read(t.Context(), []int64{left, done, 99}, redisstate.Want{Fields: fields, Rounds: redisstate.LastRounds(1), Keep: func(x *task.Task) bool {
			return x.State == task.Archived || x.ID == left
		}})
		must(t, err)
		got := stored[1].Task
		expect.MustTrue(t, got != nil, "fields", fields, got)
		expect.Equal(t, got.State, task.Archived, "fields", fields)
		expect.Equal(t, got.Outcome, "failed", "fields", fields)
		expect.NotEqual(t, got.Current().Entered[task.Archived], 0, "fields", fields)
		expect.Equal(t, stored[0].Task.State, task.Failed, "fields", fields, "the other task")
	}
}

// A move that begins in the list that the task has left is refused. A move that begins in the list archived takes the id out
// of it. Fewer moves than longRun go to transact.lua, more go to move.lua.
func TestMovesOfTasksArchivedByOriginal(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(*task.Task) (rules.Move, error){
		"archive": rules.Archive, "reopen": rules.Reopen, "remove": rules.Remove,
		"require": func(t *task.Task) (rules.Move, error) { return rules.Require(t), nil },
	} {
		for _, n := range []int{1, redisstate.LongRun} {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				onEach(t, func(t *testing.T, s *redisstate.Store) {
					movesOfTasksArchivedByOriginal(t, s, name == "archive", move, n)
				})
			})
		}
	}
}

func movesOfTasksArchivedByOriginal(t *testing.T, s *redisstate.Store, fromFinished bool, move func(*task.Task) (rules.Move, error), n int) {
	ctx, ids := t.Context(), make([]int64, n)
	for i := range ids {
		ids[i] = put(t, s, task.Succeeded)
	}
	units := func() (units []redisstate.Unit) {
		stored := expect.Result(s.Read(ctx, ids, redisstate.Want{Fields: redisstate.Rules})).Value(t)
		for _, x := range stored {
			if m, err := move(x.Task); err == nil {
				units = append(units, redisstate.Unit{Moves: []rules.Move{m}})
			}
		}
		return units
	}
	stale := units()
	archiveAsOriginal(t, s, ids...)
	outcomes := expect.Result(s.Apply(ctx, "test", stale...)).Value(t)
	for _, o := range outcomes {
		e := new(rules.StateError)
		expect.MustTrue(t, errors.As(o.Err, &e), "a move of a task that was archived meanwhile", o.Err)
		expect.MustEqual(t, e.State, task.Archived)
	}
	fresh := units()
	expect.MustEqual(t, fromFinished, len(fresh) == 0, len(fresh), "moves")
	outcomes = expect.Result(s.Apply(ctx, "test", fresh...)).Value(t)
	for i, o := range outcomes {
		must(t, o.Err)
		_, err := s.Conn.Redis.ZScore(ctx, s.Keys.List(task.Archived), strconv.FormatInt(ids[i], 10)).Result()
		expect.MustEqual(t, fresh[i].Moves[0].Verb == rules.VerbRequire, err == nil, "task", ids[i], "in the list archived")
	}
	if !fromFinished {
		mustBeSound(t, s)
	}
}

// A task that runs again is not archived, even if its id is still in the list archived.
func TestTaskThatRunsAgainIsNotArchived(t *testing.T) {
	s := newStore(t)
	id := put(t, s, task.Executed)
	s.Conn.Redis.ZAdd(t.Context(), s.Keys.List(task.Archived), redis.Z{Score: 5, Member: id})
	expect.Equal(t, read(t, s, id).State, task.Executed, "the task")
	mustSettle(t, s, id)
}

// With the setting original_workers, tasks whose programs the original TDF cannot fetch are not in the list that its workers read.
// This project's workers claim them as usual.
func TestOriginalWorkersGetOnlyTheirTasks(t *testing.T) {
	s := newStore(t)
	stored, theirs := define("x"), define("y")
	var err error
	stored.Source, err = s.Programs.PutProgram(t.Context(), []byte("archive"))
	must(t, err)
	listed := func() string {
		return fmt.Sprint(s.Conn.Redis.ZRange(t.Context(), s.Keys.List(task.Open), 0, -1).Val())
	}
	set := func(value string) {
		must(t, s.ChangeSetting(t.Context(), task.SettingOriginalWorkers, value))
		forgetRoom(s)
	}
	early := mustOpen(t, s, stored)[0]
	set("yes")
	ids := mustOpen(t, s, stored, theirs)
	outcomes := expect.Result(s.Apply(t.Context(), "m", redisstate.Unit{Open: []task.Properties{stored}})).Value(t)
	must(t, outcomes[0].Err)
	expect.Equal(t, listed(), fmt.Sprint([]int64{early, ids[1]}), "in the list open")
	found := expect.Result(audit.Of(s).Examine(t.Context(), append(ids, early, outcomes[0].IDs[0]))).Value(t)
	expect.MustLen(t, found, 1)
	expect.Equal(t, found[0].ID, early)
	if _, err := audit.Of(s).Repair(t.Context(), "server", found); err != nil || listed() != fmt.Sprint(ids[1:]) {
		t.Errorf("in the list open after the repair: %s, %v", listed(), err)
	}
	mustBeSound(t, s)
	expect.MustLen(t, mustClaim(t, s, 4), 4, "claims")
	set("no")
	mustMove(t, s, put(t, s, task.Expired), rules.Reopen)
	mustBeSound(t, s)
}
