package redisstate

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A QueueCounter remembers the counts of queues, for a caller that counts them again and again, such as the metrics. The zero value
// remembers none.
type QueueCounter struct {
	mu   sync.Mutex
	last map[string]QueueCount // by the name of the queue; nil before the first count
	next string                // the queue with which the next part begins

	names  []string // of the partitions, as they were read
	size   int64    // the number of fields that their hash had then
	reused int      // the number of calls since then
}

// How much CountQueues counts at once, if there is more.
const (
	partitionsAtOnce = 1000
	busiestAtOnce    = 250 // queues
	namesReused      = 10  // the number of calls for which the names of many partitions are good, unless their number changes
)

// CountQueues does the same as [Store.QueueCounts]. But if there are more than 1,000 partitions, only the first call counts all of them. Each
// further call counts the queues that had the most tasks, and a part of the others, so that each queue has its turn: with 10,000
// partitions, every fifteenth call.
func (s *Store) CountQueues(ctx context.Context, c *QueueCounter) ([]QueueCount, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	names, err := c.partitionNames(ctx, s)
	if err != nil {
		return nil, err
	}
	partitions := map[string][]string{tdf.DefaultQueue: nil}
	for _, name := range names {
		of, _ := tdf.ParsePartition(name)
		partitions[of.Queue] = append(partitions[of.Queue], name)
	}
	queues, next := c.turn(partitions, len(names))
	var counted []string
	for queue := range queues {
		counted = append(counted, partitions[queue]...)
	}
	counts, err := s.countPlaces(ctx, counted, queuePlace{tdf.DefaultQueue, ""})
	if err != nil {
		return nil, err
	}
	c.next = next
	if c.last == nil {
		c.last = map[string]QueueCount{}
	}
	maps.DeleteFunc(c.last, func(queue string, _ QueueCount) bool { return queues[queue] || partitions[queue] == nil })
	for _, of := range counts {
		c.last[of.Queue] = of
	}
	return slices.SortedFunc(maps.Values(c.last), func(a, b QueueCount) int { return cmp.Compare(a.Queue, b.Queue) }), nil
}

// partitionNames does the same as [Store.partitionNames]. It does not read many names at each call, because their number says whether they have
// changed, except if one has replaced another.
func (c *QueueCounter) partitionNames(ctx context.Context, s *Store) (names []string, err error) {
	size, err := conn.Ask(ctx, s.Conn, "count partitions", func(r redis.Cmdable) *redis.IntCmd { return r.HLen(ctx, s.Keys.Partitions()) })
	if err != nil && !conn.IsWrongType(err) {
		return nil, err
	}
	if c.reused++; size == c.size && size > partitionsAtOnce && c.reused <= namesReused {
		return c.names, nil
	}
	if names, err = s.partitionNames(ctx); err == nil {
		c.names, c.size, c.reused = names, size, 0
	}
	return names, err
}

// turn returns the queues whose turn it is, and the one with which the next turn begins.
func (c *QueueCounter) turn(partitions map[string][]string, all int) (queues map[string]bool, next string) {
	names := slices.Sorted(maps.Keys(partitions))
	queues = map[string]bool{tdf.DefaultQueue: true}
	left := partitionsAtOnce
	if c.last == nil || all <= partitionsAtOnce {
		left = all
	}
	busiest := slices.SortedFunc(maps.Values(c.last), func(a, b QueueCount) int { return cmp.Compare(b.Open, a.Open) })
	for _, of := range busiest[:min(len(busiest), busiestAtOnce)] {
		queues[of.Queue] = true
		left -= len(partitions[of.Queue])
	}
	first, _ := slices.BinarySearch(names, c.next)
	for i := range names {
		queue := names[(first+i)%len(names)]
		if left <= 0 && i > 0 {
			return queues, queue
		}
		if !queues[queue] {
			queues[queue] = true
			left -= len(partitions[queue])
		}
	}
	return queues, ""
}
