package redisstate

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
)

// A worker prefetches tasks (docs/lifecycle.md, "Prefetched tasks"). The hash $ns:started:$worker has, for each slot,
// the claim of the prefetched task that the slot started last. So when a worker is gone, Redis knows which of its
// prefetched tasks it had not started.

// startedLife is how long the claims of a worker's slots stay in Redis, unless they change.
const startedLife = 7 * 24 * time.Hour

// MarkStarted stores the claims that slots of a worker have started. It is best effort, and waits for no outage.
func (s *Store) MarkStarted(ctx context.Context, worker string, claims map[int]string) {
	key, values := s.Keys.Started(worker), make([]any, 0, 2*len(claims))
	for slot, claim := range claims {
		values = append(values, strconv.Itoa(slot), claim)
	}
	_, _ = s.Conn.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, key, values...)
		p.Expire(ctx, key, startedLife)
		return nil
	})
}

// ForgetStarted deletes what MarkStarted has stored, when a worker has reported all of its tasks. It is best effort.
func (s *Store) ForgetStarted(ctx context.Context, worker string) {
	s.Conn.Redis.Del(ctx, s.Keys.Started(worker))
}

// SetUnstarted sets the field Unstarted of running tasks whose leases have run out at the time now.
func (s *Store) SetUnstarted(ctx context.Context, now task.Time, tasks []Stored) error {
	of := map[string]map[string]*task.Task{} // by worker and claim
	for _, stored := range tasks {
		t := stored.Task
		if t == nil || t.State != task.Running || now < t.LeaseUntil || !t.Current().Prefetched || t.Current().Started > 0 {
			continue
		}
		t.Unstarted = true
		r := t.Current()
		if of[r.Worker] == nil {
			of[r.Worker] = map[string]*task.Task{}
		}
		of[r.Worker][r.Claim] = t
	}
	for worker, tasks := range of {
		err := s.Conn.EachField(ctx, "read what worker "+worker+" has started", s.Keys.Started(worker),
			func(_, claim string) bool {
				if t := tasks[claim]; t != nil {
					t.Unstarted = false
				}
				return true
			})
		if err != nil {
			return err
		}
	}
	return nil
}
