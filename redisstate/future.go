package redisstate

import (
	"context"
	"fmt"

	"github.com/tdf-framework/tdf"
)

// An FuturePage says where a walk through the tasks whose moment lies in the future goes on; the zero
// FuturePage is its beginning.
type FuturePage struct {
	due    bool       // all of the open list was seen; `due` follows
	behind *ListEntry // nil: go on behind the present
}

// Ahead returns the ids of up to most tasks that have a moment after now: in the open list from when
// they may be claimed, in `due` when the server must look at them. Each part comes in the order of
// these moments. Done says that the page was the last one. Where the clock was set back, some of
// these moments are wrong; [Store.Examine] tells.
func (s *Store) FutureTasks(ctx context.Context, from FuturePage, now tdf.Time, most int) (ids []int64, next FuturePage, done bool, err error) {
	key, behind := s.keys.List(tdf.Open), ListEntry{Order: float64(now)}
	if from.due {
		key = s.keys.Due()
	}
	if from.behind != nil && from.behind.Order > behind.Order {
		behind = *from.behind
	}
	args := []any{"oldest", most, score(behind.Order), behind.Member, ""}
	reply, err := s.run(ctx, findScript, []string{key}, args)
	if err != nil {
		return nil, from, false, fmt.Errorf("read the tasks whose moment lies ahead: redis: %w", err)
	}
	var all ListQuery
	for _, page := range list(reply) {
		places := all.places(tdf.Open, list(page))
		for _, p := range places {
			if id, ok := p.ID(); ok {
				ids = append(ids, id)
			}
			from.behind = &p
		}
		if len(places) < most {
			done = from.due
			from = FuturePage{due: true}
		}
	}
	return ids, from, done, nil
}
