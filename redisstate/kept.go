package redisstate

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A Keeping says for which blocked task a worker keeps resources back (docs/resources.md, "No task starves").
type Keeping struct {
	Worker string
	Task   int64
	Since  tdf.Time // when a claim first met the task as a blocked one
	Until  tdf.Time // unless a claim of the worker meets the task again
}

// Kept returns what workers are kept for at the time now.
func (s *Store) Kept(ctx context.Context, now tdf.Time) (all []Keeping, err error) {
	const what = "read for which tasks workers are kept"
	fields, err := conn.Ask(ctx, s.Conn, what, func(r redis.Cmdable) *redis.MapStringStringCmd {
		return r.HGetAll(ctx, s.Keys.Reserved())
	})
	if err != nil {
		return nil, err
	}
	for partition, text := range fields {
		k, priority := Keeping{}, 0
		var score, since, until string
		n, _ := fmt.Sscan(text, &priority, &score, &since, &until, &k.Worker)
		k.Since, _ = tdf.ParseTime(since)
		k.Until, _ = tdf.ParseTime(until)
		if n < 5 || k.Until <= now || strings.HasPrefix(partition, "@") {
			continue
		}
		place := tdf.PlaceIn(partition, priority)
		if place == class.Plain {
			place = "" // the list of tasks without a place
		}
		first, err := s.Placed(ctx, place, now, 1)
		if err != nil {
			return nil, err
		}
		if len(first) > 0 {
			k.Task = first[0]
			all = append(all, k)
		}
	}
	return all, nil
}
