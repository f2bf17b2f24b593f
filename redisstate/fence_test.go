package redisstate_test

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A change that was checked against old values of the task is refused, even if the task changed between two steps of
// the read.
func TestChangeOfATaskThatChangesMeanwhile(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("a"))
	change := func(c task.Changes) error {
		x := expect.Result(s.ReadOne(t.Context(), 1, redisstate.Want{Fields: redisstate.Rules})).Value(t)
		m := expect.Result(rules.Change(x.Task, c)).Value(t)
		outcomes := expect.Result(s.Apply(t.Context(), "m", redisstate.Unit{Moves: []rules.Move{m}})).Value(t)
		return outcomes[0].Err
	}
	late, soon := task.Time(2e9), task.Time(1e9)
	s.Conn.Redis.AddHook(once(func(c redis.Cmder) bool { return mentions(c, redisstate.FirstFields) }, func() { must(t, change(task.Changes{StartAfter: new(late.Std())})) }))
	if err := change(task.Changes{EndBefore: new(soon.Std())}); err == nil {
		got := read(t, s, 1)
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
	var c redisstate.Claim
	execute := func() {
		mustExecute(t, s, c, rules.Result{Output: "o", Exit: "0"})
	}
	moves := []func(){func() { c = mustClaim(t, s, 1)[0] }, execute, func() { mustSettle(t, s, id) }}
	s.Conn.Redis.AddHook(observer(func(c redis.Cmder) {
		sent := c.Args()[min(1, len(c.Args())-1)]
		if namesRead := sent == lua.Names.Forms().Plain.Hash() || sent == lua.Names.Source(); namesRead && len(moves) > 0 {
			move := moves[0]
			moves = moves[1:]
			move()
		}
	}))
	h, _, err := redisstate.LargeHash(s, t.Context(), id, redisstate.ValidLength)
	must(t, err)
	expect.MustLen(t, moves, 0, "moves were not made")
	read, _ := task.ParseTask(id, h)
	m, err := rules.Archive(read)
	if err == nil {
		outcomes := expect.Result(s.Apply(t.Context(), "m", redisstate.Unit{Moves: []rules.Move{m}})).Value(t)
		expect.Fails(t, outcomes[0].Err, "", "a manager archived the task", read)
	}
	mustBeSound(t, s)
}

// GiveUp skips no task, even if other tasks leave the list of running tasks meanwhile. It counts each task once.
func TestGiveUpWhileTasksEnd(t *testing.T) {
	s := newStore(t)
	const tasks, ending = redisstate.MaxTasksPerCall + 100, 600
	mustOpen(t, s, slices.Repeat([]task.Properties{define("a")}, tasks)...)
	mustClaim(t, s, tasks)
	_, since, err := s.Presence.TakeName(t.Context(), presence.WorkerInfo{Name: "w", Lease: 60}, presence.PriorOwner{})
	must(t, err)
	s.Conn.Redis.AddHook(once(func(c redis.Cmder) bool { return c.Name() == "zrange" }, func() {
		must(t, s.Conn.Redis.ZRemRangeByRank(t.Context(), s.Keys.List(task.Running), 0, ending-1).Err())
	}))
	n := expect.Result(s.GiveUp(t.Context(), "w", since)).Value(t)
	expect.Compare(t, n, "<=", tasks)
	now := expect.Result(s.Now(t.Context())).Value(t)
	due := expect.Result(s.DueTasks(t.Context(), now, 2*tasks)).Value(t)
	left := expect.Result(s.Conn.Redis.ZRange(t.Context(), s.Keys.List(task.Running), 0, -1).Result()).Value(t)
	missing := 0
	for _, id := range conn.IDsOf(left) {
		if !slices.ContainsFunc(due, func(d redisstate.Due) bool { return d.ID == id }) {
			missing++
		}
	}
	expect.Compare(t, missing, "<=", 0, n)
	expect.Len(t, left, tasks-ending, missing, n)
	expect.Equal(t, n, len(due), missing)
}
