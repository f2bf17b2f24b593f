package redisstate_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/counts"
	"github.com/tdf-framework/tdf/redisstate/index"
)

// The numbers of queues that CountQueues promises to count at each call.
const (
	queuesAlways = 250
	queuesInTurn = 350
)

// A QueueCounter always has the true counts of few queues. Of many queues, it always has those of the busiest, and those of each other queue are
// never older than docs/metrics.md says.
func TestCountQueues(t *testing.T) {
	t.Parallel()
	s := connect(t, redistest.Shared(t), redistest.Namespace(t))
	var c counts.QueueCounter
	count := func(c *counts.QueueCounter) map[string]string {
		t.Helper()
		all := map[string]string{}
		for _, of := range expect.Result(s.Counters.CountQueues(t.Context(), c)).Value(t) {
			all[of.Queue] = fmt.Sprint(of.Open, of.First, of.Tasks)
		}
		return all
	}
	exact := func() map[string]string { return count(&counts.QueueCounter{}) }
	expect.Equal(t, count(&c), exact(), "without tasks")
	a := mustOpen(t, s, define("plain"), inQueue("a"), inQueue("a"), inQueue("b"))[1]
	expect.Equal(t, count(&c), exact(), "few queues")
	claimFor(t, s, 10, offerOf("a"))
	expect.Equal(t, count(&c), exact(), "a queue without open tasks")
	mustMove(t, s, a, rules.Cancel)
	expect.Equal(t, count(&c), exact(), "a finished task")

	const turns = 3
	var many []task.Properties
	for i := range queuesAlways + turns*queuesInTurn {
		many = append(many, inQueue(fmt.Sprintf("q%04d", i)))
	}
	var ids []int64
	for part := range slices.Chunk(many, 500) {
		ids = append(ids, mustOpen(t, s, part...)...)
	}
	soon := func(when string) {
		t.Helper()
		for range turns {
			count(&c)
		}
		expect.Equal(t, count(&c), exact(), when)
	}
	soon("many queues")
	busy := mustOpen(t, s, slices.Repeat([]task.Properties{inQueue("q1234")}, 9)...)
	soon("a queue has become busy")
	mustOpen(t, s, inQueue("q1234"), define("plain"))
	mustMove(t, s, busy[0], rules.Cancel)
	got := count(&c)
	for _, queue := range []string{"q1234", class.DefaultQueue} {
		expect.Equal(t, got[queue], exact()[queue], "a busy queue is always counted")
	}
	var moves []redisstate.Unit
	for i := range 500 {
		m := expect.Result(rules.Cancel(read(t, s, ids[2*i]))).Value(t)
		moves = append(moves, redisstate.Unit{Moves: []rules.Move{m}})
	}
	expect.Result(s.Apply(t.Context(), "user", moves...)).OK(t)
	soon("queues without open tasks")
	mustMove(t, s, ids[0], rules.Remove)
	soon("a queue without tasks")
}

// A queue with very many requirements does not keep others from their turn.
func TestCountQueuesWithManyRequirements(t *testing.T) {
	t.Parallel()
	s := connect(t, redistest.Shared(t), redistest.Namespace(t))
	var all []task.Properties
	for i := range 2 * queuesInTurn {
		all = append(all, placed("a", 0, fmt.Sprintf("tag%d", i)))
	}
	for i := range queuesAlways {
		all = append(all, inQueue(fmt.Sprintf("q%d", i)), inQueue(fmt.Sprintf("q%d", i)))
	}
	for part := range slices.Chunk(append(all, inQueue("z"), inQueue("zz")), 500) {
		mustOpen(t, s, part...)
	}
	var c counts.QueueCounter
	open := func(queue string) int64 {
		all := expect.Result(s.Counters.CountQueues(t.Context(), &c)).Value(t)
		return all[slices.IndexFunc(all, func(of counts.QueueCount) bool { return of.Queue == queue })].Open
	}
	expect.Equal(t, open("a"), 2*queuesInTurn)
	mustOpen(t, s, inQueue("zz"))
	open("zz")
	expect.Equal(t, open("zz"), 2)
}

// A name or an index that another program has written is no queue.
func TestCountForeignQueues(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, inQueue("a"))
	s.Conn.Redis.Set(t.Context(), s.Keys.Queue("text"), "a string", 0)
	s.Conn.Redis.ZAdd(t.Context(), s.Keys.QueueNames(), redis.Z{Member: "text"}, redis.Z{Member: "\xff\n"}, redis.Z{Member: "none"})
	s.Conn.Redis.ZAdd(t.Context(), s.Keys.Queue("\xff\n"), redis.Z{Score: index.GroupScore(task.Open, 1), Member: "1"})
	expect.Equal(t, countsText(expect.Result(s.Counters.CountQueues(t.Context(), &counts.QueueCounter{})).Value(t)), "[{a 1}]")
	s.Conn.Redis.Del(t.Context(), s.Keys.QueueNames(), s.Keys.First())
	s.Conn.Redis.Set(t.Context(), s.Keys.QueueNames(), "text", 0)
	s.Conn.Redis.Set(t.Context(), s.Keys.First(), "text", 0)
	expect.Equal(t, countsText(expect.Result(s.Counters.CountQueues(t.Context(), &counts.QueueCounter{})).Value(t)), "[]")
}
