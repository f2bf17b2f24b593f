package counts

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A QueueCount is the number of open tasks of a queue. It includes tasks that are not due yet, but no held tasks.
type QueueCount struct {
	Queue   string // [class.DefaultQueue] for the tasks without a queue
	Open    int64
	AtLeast bool // the queue has more priorities than were counted
	// the time from which the first of these tasks could be claimed, or can be claimed; 0 if there is none
	First tdf.Time

	// all tasks of the queue by state, only from [Counters.CountQueues]; nil for the default queue, which has no index
	Tasks tdf.Counts
}

// These constants bound the work of QueueCounts.
const (
	prioritiesCounted = 20_000 // of all queues together
	leastCounted      = 10     // of each partition, even if other partitions have very many
	placesPerCount    = 1000   // in one round trip
)

// QueueCounts counts the open tasks of each queue that has any, ordered by the name of the queue. The cost grows with
// the number of partitions and priorities, not with the number of tasks. The counts of different queues may be of
// different moments.
func (s *Counters) QueueCounts(ctx context.Context) (counts []QueueCount, err error) {
	names, err := s.PartitionNames(ctx)
	if err != nil {
		return nil, err
	}
	return s.countPlaces(ctx, names, queuePlace{class.DefaultQueue, class.Plain, ""})
}

// PartitionCount counts the open tasks of a partition, as QueueCounts does. If it has more than 20,000 priorities, the
// number is too low.
func (s *Counters) PartitionCount(ctx context.Context, p class.Requirement) (int64, error) {
	counts, err := s.countPlaces(ctx, []string{p.String()})
	if err != nil || len(counts) == 0 {
		return 0, err
	}
	return counts[0].Open, nil
}

const readPlaces = "read the places of open tasks"

// countPlaces counts the tasks of partitions and of other places.
func (s *Counters) countPlaces(ctx context.Context, names []string, others ...queuePlace) (counts []QueueCount,
	err error,
) {
	places, partial, err := s.usedPlaces(ctx, names)
	if err != nil {
		return nil, err
	}
	places = append(places, others...)
	found := map[string]QueueCount{}
	for page := range slices.Chunk(places, placesPerCount) {
		sizes, firsts := make([]*redis.IntCmd, len(page)), make([]*redis.ZSliceCmd, len(page))
		err := s.Pipeline(ctx, "count the tasks of queues", func(p redis.Pipeliner) {
			for i, of := range page {
				key := s.Keys.Place(of.place)
				sizes[i], firsts[i] = p.ZCard(ctx, key), p.ZRangeWithScores(ctx, key, 0, 0)
			}
		})
		if err != nil {
			return nil, err
		}
		for i, of := range page {
			c := found[of.queue]
			c.Queue, c.AtLeast, c.Open = of.queue, partial[of.queue], c.Open+sizes[i].Val()
			for _, first := range firsts[i].Val() {
				if c.First == 0 || tdf.Time(first.Score) < c.First {
					c.First = tdf.Time(first.Score)
				}
			}
			found[of.queue] = c
		}
	}
	for _, c := range found {
		if c.Open > 0 || c.AtLeast {
			counts = append(counts, c)
		}
	}
	slices.SortFunc(counts, func(a, b QueueCount) int { return cmp.Compare(a.Queue, b.Queue) })
	return counts, nil
}

// A queuePlace is a place of open tasks, and the queue of these tasks.
type queuePlace struct{ queue, partition, place string }

// usedPlaces returns the places of partitions that may have tasks. The map has the queues with more priorities than
// usedPlaces returns.
func (s *Counters) usedPlaces(ctx context.Context, names []string) (places []queuePlace, partial map[string]bool,
	err error,
) {
	sets := make([]string, 0, 2*len(names)) // two for each partition
	for _, name := range names {
		sets = append(sets, s.Keys.Levels(name), s.Keys.Later(name))
	}
	sizes, err := conn.AskEach(ctx, s.Conn, readPlaces, sets, func(p redis.Pipeliner, set string) *redis.IntCmd {
		return p.ZCard(ctx, set)
	})
	if err != nil {
		return nil, nil, err
	}
	partial = map[string]bool{}
	priorities := make([]*redis.StringSliceCmd, len(sets))
	err = s.Pipeline(ctx, readPlaces, func(p redis.Pipeliner) {
		left := int64(prioritiesCounted)
		for i, set := range sets {
			n := min(sizes[i].Val(), max(left, leastCounted))
			left -= n
			if n > 0 {
				priorities[i] = p.ZRange(ctx, set, 0, n-1)
			}
			if n < sizes[i].Val() {
				of, _ := class.ParseRequirement(names[i/2])
				partial[of.Queue] = true
			}
		}
	})
	for i, of := range priorities {
		if of != nil {
			places = append(places, placesOf(names[i/2], of.Val())...)
		}
	}
	slices.SortFunc(places, func(a, b queuePlace) int { return cmp.Compare(a.place, b.place) })
	return slices.Compact(places), partial, err
}

// placesOf returns the places with the given priorities in a partition.
func placesOf(partition string, priorities []string) (places []queuePlace) {
	of, _ := class.ParseRequirement(partition)
	for _, text := range priorities {
		if priority, err := strconv.Atoi(text); err == nil {
			places = append(places, queuePlace{of.Queue, partition, tdf.PlaceIn(partition, priority)})
		}
	}
	return places
}
