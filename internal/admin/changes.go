package admin

import (
	"context"
	"time"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// A Change says that a task has entered its present state.
type Change struct {
	ID      int64
	State   task.State
	Outcome string // as in [manager.Task]
	Round   int
	Program string
	Group   string
	Owner   string
	Time    time.Time // when it entered the state; for an open task, when workers may claim it
}

// Changes reads which tasks have changed their states, page by page. Only one goroutine may use it.
//
// The lists in Redis hold each task once, with the time when it entered its state. So Changes reads what has entered
// the lists since its last look, and a task that has changed several times in between appears with its last state. An
// open task appears when workers may claim it. A task may appear twice, but no change of a task is missing, unless the
// task was removed or Lost is true.
type Changes struct {
	redis *redisstate.Store
	from  task.Time // all earlier entries are known
	until task.Time // the end of the present look; 0 if there is none
	last  task.Time // the end of the look before it
	at    *redisstate.ListEntry
	seen  map[redisstate.ListEntry]bool // the known entries from `from` on

	// Lost is true after a call of Next if changes may be missing, because Redis's clock went backwards.
	Lost bool
}

const (
	// changeWindow is how late an entry may come into a list, compared with its score. Scores are times of Redis's
	// clock, but tasks that are opened together have scores up to a millisecond ahead.
	changeWindow = task.Seconds(1)

	changesPerPage = 300
)

// Changes begins with the changes since a time by Redis's clock, or a little earlier.
func (a *Admin) Changes(since time.Time) *Changes {
	from := task.At(since).Add(-changeWindow)
	return &Changes{redis: a.redis(), from: max(0, from), seen: map[redisstate.ListEntry]bool{}}
}

// At returns the time up to which all changes are known. A new Changes can begin there.
func (c *Changes) At() time.Time { return c.from.Add(changeWindow).Std() }

// Next returns the next changes, at most some hundreds. If more is false, there are no others at the moment.
func (c *Changes) Next(ctx context.Context) (changes []Change, more bool, err error) {
	c.Lost = false
	if c.until == 0 {
		if err := c.begin(ctx); err != nil {
			return nil, false, err
		}
	}
	found, last, err := c.redis.Find(ctx, redisstate.ListQuery{
		States: task.States, After: c.from, Before: c.until, ByScore: true, OldestFirst: true, Behind: c.at,
	}, changesPerPage)
	if err != nil {
		return nil, false, err
	}
	var fresh []redisstate.ListEntry
	for _, e := range found {
		if !c.seen[e] {
			fresh = append(fresh, e)
		}
	}
	if changes, err = c.read(ctx, fresh); err != nil {
		return nil, false, err
	}
	for _, e := range fresh {
		if task.Time(e.Order) >= c.until.Add(-changeWindow) {
			c.seen[e] = true
		}
	}
	if len(found) > 0 {
		c.at = &found[len(found)-1]
	}
	if last {
		c.end()
	}
	return changes, !last, nil
}

// begin begins a look at the lists.
func (c *Changes) begin(ctx context.Context) error {
	now, err := c.redis.Now(ctx)
	if err != nil {
		return err
	}
	if c.Lost = now < c.last || now < c.from; c.Lost {
		c.from = now.Add(-changeWindow)
		clear(c.seen)
	}
	c.until, c.last, c.at = now, now, nil
	return nil
}

// end ends a look at the lists. The next look reads the last second again, because of entries that come late.
func (c *Changes) end() {
	c.from, c.until, c.at = max(c.from, c.until.Add(-changeWindow)), 0, nil
	for e := range c.seen {
		if task.Time(e.Order) < c.from {
			delete(c.seen, e)
		}
	}
}

// read returns the changes of the tasks of some entries.
func (c *Changes) read(ctx context.Context, entries []redisstate.ListEntry) ([]Change, error) {
	ids, times := []int64{}, []task.Time{}
	for _, e := range entries {
		if id, ok := e.ID(); ok {
			ids, times = append(ids, id), append(times, task.Time(e.Order))
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	stored, err := c.redis.Read(ctx, ids, redisstate.Want{Fields: redisstate.Head})
	if err != nil {
		return nil, err
	}
	var changes []Change
	for i, s := range stored {
		if t := s.Task; t != nil {
			changes = append(changes, Change{
				t.ID, t.State, t.Outcome, t.Round, t.Program, t.Group, t.Owner,
				times[i].Std(),
			})
		}
	}
	return changes, nil
}
