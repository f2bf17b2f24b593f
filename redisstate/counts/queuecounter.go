package counts

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/index"
)

// A QueueCounter remembers the counts of queues, for a caller that counts them again and again, such as the metrics.
// The zero value remembers none.
type QueueCounter struct {
	rotation[QueueCount]
	listed []QueueCount        // what the last call returned
	names  []string            // of all queues, in the order of their bytes
	sets   map[string][]string // the names of the requirements of each queue that have due tasks
	// what Redis had when these names were read: requirements with due tasks, and queues with an index
	sizes  [2]int64
	reused int // the number of calls since then
}

// How much CountQueues counts and reads at once, if there is more.
const (
	busiestAtOnce  = 250    // queues
	countedPerPage = 250    // queues whose tasks are counted by state in one round trip
	namesPerPage   = 1000   // names of queues
	mostNames      = 20_000 // names of queues with an index, about
	namesReused    = 10     // the number of calls for which many names are good, unless their number changes
)

// CountQueues counts the open tasks of each queue, as [Counters.QueueCounts] does, and its tasks by state. It returns
// the queues that have any, ordered by name, in a list that the caller must not change. It leaves out all but about
// 20,000 queues, in the order of the bytes of their names.
//
// Only the first call with a counter counts all queues. Each further call counts the 250 queues that had the most open
// tasks, and 350 others, or those that have 350 requirements. So each queue has its turn: with 10,000 queues of one
// requirement, at the latest at every 28th call. The counts of different queues are of different moments.
func (s *Counters) CountQueues(ctx context.Context, c *QueueCounter) ([]QueueCount, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.readNames(ctx, s); err != nil {
		return nil, err
	}
	queues := []string{class.DefaultQueue}
	busiest, _ := Busiest(c.listed, busiestAtOnce, func(q *QueueCount) [2]int64 {
		return [2]int64{q.Open, q.Tasks.Unfinished()}
	})
	for _, of := range busiest {
		queues = append(queues, of.Queue)
	}
	turn, next := c.turn(queues, c.names, func(name string) int { return max(1, len(c.sets[name])) })
	counted, err := s.countQueues(ctx, turn, c.sets)
	if err != nil {
		return nil, err
	}
	if c.last == nil {
		c.last = map[string]QueueCount{}
	}
	for _, name := range turn {
		c.last[name] = counted[name]
	}
	c.next = next
	c.listed = make([]QueueCount, 0, len(c.last))
	for _, name := range c.names {
		if of := c.last[name]; of.Queue != "" {
			c.listed = append(c.listed, of)
		}
	}
	return c.listed, nil
}

// readNames reads the names of the queues and of their requirements. It does not read many names at each call, because
// their number says whether they have changed, except if one has replaced another.
func (c *QueueCounter) readNames(ctx context.Context, s *Counters) error {
	var waiting, queues *redis.IntCmd
	err := s.Conn.Pipeline(ctx, "count the names of queues", func(p redis.Pipeliner) {
		waiting, queues = p.HLen(ctx, s.Conn.Keys.First()), p.ZCard(ctx, s.Conn.Keys.QueueNames())
	})
	if err != nil {
		return err
	}
	sizes := [2]int64{waiting.Val(), queues.Val()}
	c.reused++
	if sizes == c.sizes && sizes[0]+sizes[1] > namesPerPage && c.reused <= namesReused {
		return nil
	}
	names, err := s.Waiting(ctx)
	if err != nil {
		return err
	}
	all := map[string][]string{class.DefaultQueue: nil}
	for _, name := range names {
		of, _ := class.ParseRequirement(name)
		all[of.Queue] = append(all[of.Queue], name)
	}
	for after, read := "", 0; read == 0 || after != "" && read < mostNames; read += namesPerPage {
		page, err := s.NamesAfter(ctx, "read the names of queues", s.Conn.Keys.QueueNames(), "", after, namesPerPage)
		if err != nil && !conn.IsWrongType(err) {
			return err
		}
		after = ""
		for i, name := range page {
			// another program may have written the name
			if all[name] == nil && task.CheckLabel(task.FieldQueue, name) == nil {
				all[name] = nil
			}
			if i == namesPerPage-1 {
				after = name
			}
		}
	}
	c.names, c.sets, c.sizes, c.reused = slices.Sorted(maps.Keys(all)), all, sizes, 0
	maps.DeleteFunc(c.last, func(name string, _ QueueCount) bool { _, is := all[name]; return !is })
	return nil
}

// countQueues counts the tasks of queues with these requirements. It leaves out queues without tasks.
func (s *Counters) countQueues(ctx context.Context, queues []string,
	sets map[string][]string,
) (map[string]QueueCount, error) {
	var tasks map[string]task.Counts
	counted := make(chan error, 1)
	go func() { // at the same time, because each of both takes many round trips
		var err error
		tasks, err = s.countTasks(ctx, queues)
		counted <- err
	}()
	names := []string{""}
	for _, queue := range queues {
		names = append(names, sets[queue]...)
	}
	open, err := s.countSets(ctx, names)
	err = cmp.Or(err, <-counted)
	if err != nil {
		return nil, err
	}
	all := map[string]QueueCount{}
	for queue, of := range tasks {
		all[queue] = QueueCount{Queue: queue, Tasks: of}
	}
	for _, of := range open {
		of.Tasks = tasks[of.Queue]
		all[of.Queue] = of
	}
	return all, nil
}

// countTasks counts the tasks in each state of those queues that have tasks. It leaves out the default queue, which has
// no index.
func (s *Counters) countTasks(ctx context.Context, queues []string) (map[string]task.Counts, error) {
	all := map[string]task.Counts{}
	for page := range slices.Chunk(queues, countedPerPage) {
		counts := make([]index.ReadCounts, len(page))
		err := s.Conn.Pipeline(ctx, "count the tasks of queues by state", func(p redis.Pipeliner) {
			for i, name := range page {
				counts[i] = index.CountIn(ctx, p, s.Conn.Keys.Queue(name))
			}
		})
		if err != nil {
			return nil, err
		}
		for i, name := range page {
			if n := counts[i].Counts(); n.Total() > 0 {
				all[name] = n
			}
		}
	}
	return all, nil
}
