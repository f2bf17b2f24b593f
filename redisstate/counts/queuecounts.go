package counts

import (
	"cmp"
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/limits"
)

// A QueueCount is the number of due open tasks of a queue: those that workers may claim. It includes no held tasks.
type QueueCount struct {
	Queue string // [class.DefaultQueue] for the tasks without a queue
	Open  int64
	// the time since which the next task of a requirement has been due: the earliest of these times; 0 if there is none
	First task.Time

	// all tasks of the queue by state, only from [Counters.CountQueues]; nil for the default queue, which has no index
	Tasks task.Counts
}

// setsPerCount is how many sets are counted in one round trip.
const setsPerCount = 1000

// QueueCounts counts the due open tasks of each queue that has any, ordered by the name of the queue. The cost grows
// with the number of requirements, not with the number of tasks. The counts of different queues may be of different
// moments.
func (s *Counters) QueueCounts(ctx context.Context) (counts []QueueCount, err error) {
	names, err := s.Waiting(ctx)
	if err != nil {
		return nil, err
	}
	return s.countSets(ctx, append(names, ""))
}

// laterRead bounds how many tasks that are not due yet OpenWith looks at.
const laterRead = 10_000

// OpenWith counts the open tasks with a requirement, those that are not due yet included: the first 10,000 of all
// requirements.
func (s *Counters) OpenWith(ctx context.Context, r class.Requirement) (int64, error) {
	var due *redis.IntCmd
	var later *redis.StringSliceCmd
	err := s.Conn.Pipeline(ctx, "count open tasks", func(p redis.Pipeliner) {
		due = p.ZCard(ctx, s.Conn.Keys.OpenSet(r.String()))
		later = p.ZRange(ctx, s.Conn.Keys.Later(), 0, laterRead-1)
	})
	if err != nil {
		return 0, err
	}
	n := due.Val()
	names, err := s.requirementsOf(ctx, conn.IDsOf(later.Val()))
	for _, name := range names {
		if name == r.String() {
			n++
		}
	}
	return n, err
}

// requirementsOf returns the requirements, or the reasons, in the places of tasks.
func (s *Counters) requirementsOf(ctx context.Context, ids []int64) (names []string, err error) {
	places, err := conn.AskEach(ctx, s.Conn, "read the places of tasks", ids,
		func(p redis.Pipeliner, id int64) *redis.StringCmd {
			return p.HGet(ctx, s.Conn.Keys.Task(id), task.FieldPlace)
		})
	for _, place := range places {
		t := task.Task{State: task.Open, PlacedIn: place.Val()}
		names = append(names, t.PlacedSet())
	}
	return names, err
}

// countSets counts the due tasks of requirements, and of the list of the tasks without a place, "".
func (s *Counters) countSets(ctx context.Context, names []string) (counts []QueueCount, err error) {
	found := map[string]QueueCount{}
	now, err := conn.Ask(ctx, s.Conn, "read the time", func(r redis.Cmdable) *redis.TimeCmd { return r.Time(ctx) })
	if err != nil {
		return nil, err
	}
	for page := range slices.Chunk(names, setsPerCount) {
		sizes, firsts := make([]*redis.IntCmd, len(page)), make([]*redis.StringSliceCmd, len(page))
		plain := &redis.ZSliceCmd{}
		err := s.Conn.Pipeline(ctx, "count the tasks of queues", func(p redis.Pipeliner) {
			for i, name := range page {
				key := s.Conn.Keys.OpenSet(name)
				if name == "" {
					sizes[i] = p.ZCount(ctx, key, "-inf", task.At(now).String())
					plain = p.ZRangeWithScores(ctx, key, 0, 0)
				} else {
					sizes[i], firsts[i] = p.ZCard(ctx, key), p.ZRange(ctx, key, 0, 0)
				}
			}
		})
		if err != nil {
			return nil, err
		}
		for i, name := range page {
			r, _ := class.ParseRequirement(cmp.Or(name, class.Plain))
			c := found[r.Queue]
			c.Queue, c.Open = r.Queue, c.Open+sizes[i].Val()
			var first task.Time
			if firsts[i] != nil && len(firsts[i].Val()) > 0 {
				first = limits.TimeOf(firsts[i].Val()[0])
			} else if name == "" && len(plain.Val()) > 0 && sizes[i].Val() > 0 {
				first = task.Time(plain.Val()[0].Score)
			}
			if first > 0 && (c.First == 0 || first < c.First) {
				c.First = first
			}
			found[r.Queue] = c
		}
	}
	for _, c := range found {
		if c.Open > 0 {
			counts = append(counts, c)
		}
	}
	slices.SortFunc(counts, func(a, b QueueCount) int { return cmp.Compare(a.Queue, b.Queue) })
	return counts, nil
}
