package redisstate

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

// A TaskCounter remembers the tasks of queues, for a caller that counts them again and again, such as the metrics. The zero value
// remembers none.
type TaskCounter struct {
	mu   sync.Mutex
	last map[string]tdf.Counts // by the name of the queue; nil before the first count
	next string                // the name after which the next page of names begins
}

// How many queues CountTasks counts.
const (
	mostQueuesCounted = 20_000 // of a namespace
	countedPerPage    = 250
	busiestPerCount   = 200
)

const readQueueTasks = "count the tasks of queues by state"

// CountTasks counts the tasks in each state, for each queue with tasks. It leaves out the default queue, which has no index, and all but
// about 20,000 queues, in the order of the bytes of their names. The first call counts all queues. Each further call with the same
// counter counts the 200 queues with the most unfinished tasks, and the next 250 of all queues, so the counts of the others may be some
// calls old. The counts of different queues are of different moments.
func (s *Store) CountTasks(ctx context.Context, c *TaskCounter) (map[string]tdf.Counts, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil {
		if err := s.countTasksOf(ctx, c, c.busiest()); err != nil {
			return nil, err
		}
		err := s.countPage(ctx, c)
		return maps.Clone(c.last), err
	}
	all := TaskCounter{last: map[string]tdf.Counts{}}
	for more := true; more; more = all.next != "" {
		if err := s.countPage(ctx, &all); err != nil {
			return nil, err
		}
	}
	c.last, c.next = all.last, ""
	return maps.Clone(c.last), nil
}

// busiest returns the queues with the most unfinished tasks.
func (c *TaskCounter) busiest() []string {
	names := slices.SortedFunc(maps.Keys(c.last), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.last[b].Unfinished(), c.last[a].Unfinished()), cmp.Compare(a, b))
	})
	return names[:min(len(names), busiestPerCount)]
}

// countPage counts the next page of queues, and forgets those between them that have no tasks any more.
func (s *Store) countPage(ctx context.Context, c *TaskCounter) error {
	names, err := s.namesAfter(ctx, readQueueTasks, s.Keys.QueueNames(), "", c.next, countedPerPage)
	if err != nil {
		return err
	}
	first, last := c.next, ""
	if len(names) == countedPerPage && len(c.last) < mostQueuesCounted {
		last = names[len(names)-1]
	}
	maps.DeleteFunc(c.last, func(name string, _ tdf.Counts) bool {
		_, listed := slices.BinarySearch(names, name)
		return name > first && (last == "" || name <= last) && !listed
	})
	c.next = last
	return s.countTasksOf(ctx, c, names)
}

func (s *Store) countTasksOf(ctx context.Context, c *TaskCounter, names []string) error {
	counts := make([]readCounts, len(names))
	err := s.Pipeline(ctx, readQueueTasks, func(p redis.Pipeliner) {
		for i, name := range names {
			counts[i] = taskIndex{true, name}.countIn(ctx, p, s.Keys)
		}
	})
	if err != nil {
		return err
	}
	for i, name := range names {
		if n := counts[i].counts(); n.Total() > 0 && tdf.CheckLabel(tdf.FieldQueue, name) == nil { // another program may have written the name
			c.last[name] = n
		} else {
			delete(c.last, name)
		}
	}
	return nil
}
