package audit

import (
	"context"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// A FuturePage is the place where a walk through the tasks with a time in the future continues. The walk begins with
// the zero FuturePage.
type FuturePage struct {
	inDue  bool                  // the walk has reached `due`
	behind *redisstate.ListEntry // the entry after which the walk continues; nil starts at the current time
}

// FutureTasks returns the next page of a walk through the tasks whose time lies in the future. In the open lists, this
// is the time from which a task may be claimed. In `due`, it is the time at which the server must settle the task. The
// walk follows the order of these times, first in the open lists and then in `due`. A page has at most the given number
// of ids. If the page was the last one, done is true. If the clock was set back, some of these times are wrong.
// [Auditor.Examine] finds the tasks with a wrong time.
func (a Auditor) FutureTasks(ctx context.Context, from FuturePage, now task.Time, most int) (
	ids []int64, next FuturePage, done bool, err error,
) {
	list := task.Open
	if from.inDue {
		list = "due" // the list with the key `due`
	}
	entries, last, err := a.store.Find(ctx, redisstate.ListQuery{
		States: []task.State{list}, After: now, ByScore: true, OldestFirst: true, Behind: from.behind,
	}, most)
	switch {
	case err != nil:
		return nil, from, false, err
	case last:
		done, from = from.inDue, FuturePage{inDue: true}
	default:
		from.behind = &entries[len(entries)-1]
	}
	return redisstate.IDsOf(entries), from, done, nil
}
