package redisstate

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

// A QueueCounter always has the true counts of few queues. Of many queues, it always has those of the busiest, and soon those of the others.
func TestCountQueues(t *testing.T) {
	t.Parallel()
	s := connect(t, redistest.Shared(t), redistest.Namespace(t))
	var c QueueCounter
	count := func() map[string]int64 {
		t.Helper()
		all := map[string]int64{}
		for _, of := range expect.Result(s.CountQueues(t.Context(), &c)).Value(t) {
			all[of.Queue] = of.Open
		}
		return all
	}
	exact := func() map[string]int64 {
		all := map[string]int64{}
		for _, of := range expect.Result(s.QueueCounts(t.Context())).Value(t) {
			all[of.Queue] = of.Open
		}
		return all
	}
	expect.Equal(t, count(), exact(), "without tasks")
	mustOpen(t, s, define("plain"), inQueue("a"), inQueue("a"), inQueue("b"))
	expect.Equal(t, count(), exact(), "few queues")
	claimFor(t, s, 10, offerOf("a"))
	expect.Equal(t, count(), exact(), "an empty queue")

	const many = 2 * partitionsAtOnce
	open := func(n int) (all []tdf.Properties) {
		for i := range n {
			all = append(all, inQueue(fmt.Sprintf("q%04d", i)))
		}
		return all
	}
	for part := range slices.Chunk(open(many), 500) {
		mustOpen(t, s, part...)
	}
	count() // the first count of so many does not know them
	for range 4 {
		count()
	}
	expect.Equal(t, count(), exact(), "many queues")
	for range 9 {
		mustOpen(t, s, inQueue("q1234"))
	}
	for range 4 {
		count()
	}
	mustOpen(t, s, inQueue("q1234"), define("plain"))
	got := count()
	expect.True(t, got["q1234"] == 11 && got[tdf.DefaultQueue] == 2, "a busy queue is always counted", got["q1234"], got[tdf.DefaultQueue])
	var fresh QueueCounter
	c.last = fresh.last
	expect.Equal(t, count(), exact(), "the first count counts all")
	claimed := 0
	for claimed < 500 {
		var queues []tdf.QueueShare
		for i := range 100 {
			queues = append(queues, tdf.QueueShare{Queue: fmt.Sprintf("q%04d", claimed/100*100+i)})
		}
		claimed += len(claimFor(t, s, 100, tdf.Offer{Queues: queues, Programs: true}).Claims)
	}
	for range 4 {
		count()
	}
	expect.Equal(t, count(), exact(), "queues that have become empty")
}
