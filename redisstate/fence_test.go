package redisstate

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// afterFirstStep is a hook that calls a function once, after the first step of a read with Rules.
type afterFirstStep struct{ do func() }

func (r *afterFirstStep) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *afterFirstStep) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r *afterFirstStep) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		err := next(ctx, c)
		if do := r.do; do != nil && err == nil && strings.Contains(fmt.Sprint(c.Args()), strings.Join(firstFields, " ")) {
			r.do = nil
			do()
		}
		return err
	}
}

// A change that was checked against old values of the task is refused, even if the task changed between two steps of
// the read.
func TestChangeOfATaskThatChangesMeanwhile(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("a"))
	change := func(c tdf.Changes) error {
		x := expect.Result(s.ReadOne(t.Context(), 1, Want{Fields: Rules})).Value(t)
		m := expect.Result(x.Task.Change(c)).Value(t)
		outcomes, err := s.Apply(t.Context(), "m", Unit{Moves: []tdf.Move{m}})
		must(t, err)
		return outcomes[0].Err
	}
	late, soon := tdf.Time(2e9), tdf.Time(1e9)
	s.Redis.AddHook(&afterFirstStep{func() { must(t, change(tdf.Changes{StartAfter: new(late.Std())})) }})
	if err := change(tdf.Changes{EndBefore: new(soon.Std())}); err == nil {
		got := task(t, s, 1)
		t.Errorf("the task starts after %v and ends before %v", got.StartAfter, got.EndBefore)
	}
}

// A task may move whenever a client reads a piece of it. Then the properties do not fit together: for example, the task has succeeded,
// but the time is missing. Redis refuses a move that is based on them. Otherwise, a manager that archives the task would drop its
// entry in due, and the server would never remove its outputs.
func TestMoveOfATaskThatMovesBetweenTwoPieces(t *testing.T) {
	s := newStore(t)
	d := define("x")
	d.KeepOutputs = 1e-6
	id := mustOpen(t, s, d)[0]
	var c Claim
	execute := func() {
		m, err := c.Task.Execute(c.ID, tdf.Result{Output: "o", Exit: "0"})
		must(t, err)
		_, err = s.Execute(t.Context(), "w", m)
		must(t, err)
	}
	moves := []func(){func() { c = mustClaim(t, s, 1)[0] }, execute, func() { mustSettle(t, s, id) }}
	s.Redis.AddHook(afterNames(func() {
		if len(moves) > 0 {
			move := moves[0]
			moves = moves[1:]
			move()
		}
	}))
	h, _, err := s.largeHash(t.Context(), id, validLength)
	must(t, err)
	expect.MustLen(t, moves, 0, "moves were not made")
	read, _ := tdf.ParseTask(id, h)
	m, err := read.Archive()
	if err == nil {
		outcomes := expect.Result(s.Apply(t.Context(), "m", Unit{Moves: []tdf.Move{m}})).Value(t)
		expect.Fails(t, outcomes[0].Err, "", "a manager archived the task", read)
	}
	mustBeSound(t, s)
}

// afterNames is a hook that calls a function after each read of the names of a task's properties.
type afterNames func()

func (r afterNames) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r afterNames) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r afterNames) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		err := next(ctx, c)
		sent := c.Args()[min(1, len(c.Args())-1)]
		if err == nil && (sent == lua.Names.Forms().Plain.Hash() || sent == lua.Names.Source()) {
			r()
		}
		return err
	}
}
