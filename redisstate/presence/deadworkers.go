package presence

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/counts"
)

// deathsKept is how long a counted death is remembered.
const deathsKept = 7 * day

// CountDead counts the workers whose last heartbeat came after a time, and not after another one: they are dead. It
// counts each death once, whichever clients count, and only those of workers for which counted returns true. Workers
// that have died more than a week ago are forgotten, which it counts, too.
func (s *Presence) CountDead(ctx context.Context, after, upTo task.Time, counted func(*WorkerStatus) bool) error {
	ctx = conn.Unacknowledged(ctx)
	forgotten, err := conn.Ask(ctx, s.Conn, "forget dead workers", func(r redis.Cmdable) *redis.IntCmd {
		return r.ZRemRangeByScore(ctx, s.Conn.Keys.DeadWorkers(), "-inf", "("+upTo.Add(-deathsKept).String())
	})
	if err != nil {
		return err
	}
	s.counts.Count("", counts.CountForgotten, forgotten)
	const doing = "find dead workers"
	end, err := conn.Ask(ctx, s.Conn, doing, func(r redis.Cmdable) *redis.IntCmd {
		return r.ZCount(ctx, s.Conn.Keys.Workers(), "("+after.String(), upTo.String())
	})
	// A worker that registers again moves all later ones forward. So the pages are read from the end to the beginning:
	// then a name is read twice, instead of never.
	for ; err == nil && end > 0; end -= mostWorkers {
		from := max(0, end-mostWorkers)
		names, err := conn.Ask(ctx, s.Conn, doing, func(r redis.Cmdable) *redis.StringSliceCmd {
			return r.ZRangeByScore(ctx, s.Conn.Keys.Workers(), &redis.ZRangeBy{
				Min: "(" + after.String(), Max: upTo.String(),
				Offset: from, Count: end - from,
			})
		})
		if err != nil {
			return err
		}
		found, err := s.readWorkers(ctx, names)
		if err != nil {
			return err
		}
		for i := range found {
			w := &found[i]
			if w.Seen > upTo || !counted(w) {
				continue
			}
			added, err := conn.Ask(ctx, s.Conn, "note that a worker is dead", func(r redis.Cmdable) *redis.IntCmd {
				return r.ZAddArgs(ctx, s.Conn.Keys.DeadWorkers(), redis.ZAddArgs{
					GT: true, Ch: true,
					Members: []redis.Z{{Score: float64(w.Seen), Member: w.Name}},
				})
			})
			if err != nil {
				return err
			}
			s.counts.Count(w.Offer.Shares()[0].Queue, counts.CountDied, added)
		}
	}
	return err
}

// CountRegistration counts the registration of a worker that serves a queue.
func (s *Presence) CountRegistration(queue string) { s.counts.Count(queue, counts.CountRegistered, 1) }
