package redisstate

import (
	"context"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// A FuturePage is the place where a walk through the tasks with a time in the future continues. The walk begins with
// the zero FuturePage.
type FuturePage struct {
	phase  int        // 0 for the list of the open tasks, 1 for the open tasks with a place, 2 for `due`
	behind *ListEntry // the entry after which the walk continues; nil starts at the current time
}

// FutureTasks returns the next page of a walk through the tasks whose time lies in the future. In the open lists, this
// is the time from which a task may be claimed. In `due`, it is the time at which the server must settle the task. The
// walk follows the order of these times, first in the open lists and then in `due`. A page has at most the given number
// of ids. If the page was the last one, done is true. If the clock was set back, some of these times are wrong.
// [Store.Examine] finds the tasks with a wrong time.
func (s *Store) FutureTasks(ctx context.Context, from FuturePage, now tdf.Time, most int) (ids []int64, next FuturePage, done bool, err error) {
	keys := []string{s.Keys.List(tdf.Open), s.Keys.List(tdf.Placed), s.Keys.Due()}
	key, behind := keys[from.phase], ListEntry{Order: float64(now)}
	if from.behind != nil && from.behind.Order > behind.Order {
		behind = *from.behind
	}
	args := []any{"oldest", most, score(behind.Order), behind.Member, ""}
	reply, err := s.Run(ctx, "read tasks with a time in the future", lua.Find, []string{key}, args, conn.Tuple(conn.ManyTexts))
	if err != nil {
		return nil, from, false, err
	}
	var all ListQuery
	for _, page := range conn.List(reply) {
		places := all.places(tdf.Open, conn.List(page))
		for _, p := range places {
			if id, ok := p.ID(); ok {
				ids = append(ids, id)
			}
			from.behind = &p
		}
		if len(places) < most {
			done = from.phase == len(keys)-1
			from = FuturePage{phase: min(from.phase+1, len(keys)-1)}
		}
	}
	return ids, from, done, nil
}
