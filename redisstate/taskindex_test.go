package redisstate_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
	"github.com/tdf-framework/tdf/redisstate/counts"
)

// tasksByQueue returns the tasks of each queue by state, as a text.
func tasksByQueue(t *testing.T, s *redisstate.Store) string {
	t.Helper()
	tasks := tasksIn(expect.Result(s.Counters.CountQueues(t.Context(), &counts.QueueCounter{})).Value(t))
	names := expect.Result(s.Conn.Redis.ZRange(t.Context(), s.Keys.QueueNames(), 0, -1).Result()).Value(t)
	expect.Len(t, tasks, len(names), "a name of a queue is missing, or too many")
	return fmt.Sprint(tasks)
}

// tasksIn returns the tasks of each queue with an index.
func tasksIn(all []counts.QueueCount) map[string]task.Counts {
	tasks := map[string]task.Counts{}
	for _, of := range all {
		if of.Tasks != nil {
			tasks[of.Queue] = of.Tasks
		}
	}
	return tasks
}

// A queue counts its tasks in each state, from its first task to its last one, whatever opens, moves or removes them.
func TestTasksOfQueues(t *testing.T) {
	s := newStore(t)
	mustBe := func(when, want string) {
		t.Helper()
		expect.Equal(t, tasksByQueue(t, s), want, when)
	}
	mustBe("without tasks", "map[]")
	both := placed("b", 0)
	both.Group = "g"
	ids := mustOpen(t, s, placed("a", 0), placed("", 3), both, placed("a", 5))
	transaction(t, s, []task.Properties{placed("c", 0), placed("", 0)})
	unique := placed("a", 0)
	unique.Unique = "k"
	mustOpenUnique(t, s, unique)
	mustBe("opened", "map[a:open 3 b:open 1 c:open 1]")
	claims := claimFor(t, s, 2, offerOf("b", "a")).Claims
	mustBe("claimed", "map[a:open 2 running 1 b:running 1 c:open 1]")
	for _, c := range claims {
		m, err := rules.Execute(c.Task, c.ID, rules.Result{Exit: "0"})
		mustApply(t, s, m, err)
	}
	mustBe("executed", "map[a:open 2 executed 1 b:executed 1 c:open 1]")
	settleMany(t, s)
	mustBe("settled", "map[a:open 2 succeeded 1 b:succeeded 1 c:open 1]")
	for _, id := range []int64{ids[2], ids[3]} {
		mustMove(t, s, id, rules.Archive)
	}
	mustBe("archived", "map[a:open 2 archived 1 b:archived 1 c:open 1]")
	mustBeSound(t, s)
	for _, id := range []int64{ids[2], ids[3]} {
		mustMove(t, s, id, rules.Remove)
	}
	mustBe("removed", "map[a:open 2 c:open 1]")
	mustBeSound(t, s)
}

// When the queue of a task changes, its old queue no longer counts it. A move whose task was read before the change counts in the
// new queue.
func TestTasksOfChangedQueues(t *testing.T) {
	to := func(queue string) func(*task.Task) (rules.Move, error) {
		return func(t *task.Task) (rules.Move, error) { return rules.Change(t, task.Changes{Queue: &queue}) }
	}
	for _, of := range []struct {
		name         string
		first        task.Properties
		before, then string // queues to which the task changes, before and after the caller reads it
		move         func(*task.Task) (rules.Move, error)
		want         string
	}{
		{"to another queue", placed("a", 0), "b", "", nil, "map[b:open 1]"},
		{"to the default queue", placed("a", 0), "default", "", nil, "map[]"},
		{"from the default queue", placed("", 0), "a", "", nil, "map[a:open 1]"},
		{"of a waiting task", waiting(placed("a", 0)), "b", "", nil, "map[b:open 1]"},
		{"cancelled", placed("a", 0), "b", "", rules.Cancel, "map[b:expired 1]"},
		{"cancelled as a task of another queue", placed("a", 0), "", "b", rules.Cancel, "map[b:expired 1]"},
		{"cancelled as a task of no queue", placed("", 0), "", "b", rules.Cancel, "map[b:expired 1]"},
		{"cancelled as a task that now has no queue", placed("a", 0), "", "default", rules.Cancel, "map[]"},
	} {
		t.Run(of.name, func(t *testing.T) {
			for _, together := range []bool{false, true} { // alone with move.lua, and with another move in transact.lua
				s := connectShared(t)
				mustOpen(t, s, define("needed"))
				id := mustOpen(t, s, of.first)[0]
				if of.before != "" {
					mustMove(t, s, id, to(of.before))
				}
				m, err := rules.Move{}, error(nil)
				if of.move != nil {
					m, err = of.move(read(t, s, id))
				}
				if of.then != "" {
					mustMove(t, s, id, to(of.then))
				}
				if of.move != nil {
					expect.NoError(t, err)
					applyWith(t, s, m, together)
				}
				expect.Equal(t, tasksByQueue(t, s), of.want, together)
				mustBeSound(t, s)
			}
		})
	}
}

func waiting(d task.Properties) task.Properties {
	d.After = &task.Dependencies{Tasks: []int64{1}}
	return d
}

// connectShared returns a store of a namespace of its own, for a test that is not parallel.
func connectShared(t *testing.T) *redisstate.Store {
	t.Helper()
	return connect(t, redistest.Shared(t), redistest.Namespace(t))
}

// applyWith makes a move, alone or together with the cancellation of task 1.
func applyWith(t *testing.T, s *redisstate.Store, m rules.Move, together bool) {
	t.Helper()
	u := redisstate.Unit{Moves: []rules.Move{m}}
	if together {
		other := expect.Result(rules.Cancel(read(t, s, 1))).Value(t)
		u.Moves = append(u.Moves, other)
	}
	expect.NoError(t, expect.Result(s.Apply(t.Context(), "user", u)).Value(t)[0].Err)
}

// A task that is reopened in another queue leaves the old one.
func TestTasksOfReopenedQueues(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		for from, want := range map[string]map[string]string{
			"a": {"b": "map[b:open 1]", "default": "map[]", "a": "map[a:open 1]"},
			"":  {"b": "map[b:open 1]"},
		} {
			for to, want := range want {
				id := mustOpen(t, s, placed(from, 0))[0]
				mustMove(t, s, id, rules.Cancel)
				mustMove(t, s, id, func(t *task.Task) (rules.Move, error) { return rules.ReopenWith(t, task.Changes{Queue: &to}) })
				expect.Equal(t, tasksByQueue(t, s), want, "from", from, "to", to)
				mustBeSound(t, s)
				mustMove(t, s, id, rules.Cancel)
				mustMove(t, s, id, rules.Remove)
			}
		}
	})
}

// The audit completes the index of a queue that lacks tasks, and removes ids without a task.
func TestIndexesOfQueuesAreRepaired(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		ctx := t.Context()
		ids := mustOpen(t, s, slices.Repeat([]task.Properties{placed("a/b", 0)}, 3)...)
		s.Conn.Redis.Del(ctx, s.Keys.Queue("a/b"), s.Keys.QueueNames()) // as with tasks of an earlier release
		findings := expect.Result(audit.Of(s).Check(ctx)).Value(t)
		expect.MustLen(t, findings, 3)
		expect.Equal(t, findings[0].Problem, "the index of its group or queue does not list it as open")
		expect.Result(audit.Of(s).Repair(ctx, "repair", findings)).Is(t, 3)
		keepIndexNames(t, s)
		expect.Equal(t, tasksByQueue(t, s), "map[a/b:open 3]")

		s.Conn.Redis.Del(ctx, s.Keys.Task(ids[0]))
		s.Conn.Redis.ZRem(ctx, s.Keys.List(rules.Placed), ids[0])
		s.Conn.Redis.Set(ctx, s.Keys.Queue("wrong"), "a string", 0)
		s.Conn.Redis.ZAdd(ctx, s.Keys.QueueNames(), redis.Z{Member: "none"})
		findings = expect.Result(audit.Of(s).Check(ctx)).Value(t)
		expect.MustLen(t, findings, 1)
		expect.Equal(t, findings[0].Problem, `an id without a task, in the index of queue "a/b"`)
		expect.Result(audit.Of(s).Repair(ctx, "repair", findings)).Is(t, 1)
		keepIndexNames(t, s)
		expect.Equal(t, tasksByQueue(t, s), "map[a/b:open 2]")
	})
}

// keepIndexNames makes three steps of the walk through all indexes, as the audit does.
func keepIndexNames(t *testing.T, s *redisstate.Store) {
	t.Helper()
	var page audit.IndexPage
	for range 3 {
		var err error
		_, page, _, err = audit.Of(s).DanglingIDs(t.Context(), page, 500)
		expect.NoError(t, err)
		page = expect.Result(audit.Of(s).KeepIndexNames(t.Context(), page)).Value(t)
	}
}
