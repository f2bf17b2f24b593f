package redisstate

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

// ManagerHeartbeat notes that this client waits for judged tasks, and will be back within the span given.
func (s *Store) ManagerHeartbeat(ctx context.Context, now tdf.Time, within tdf.Seconds) error {
	return s.bestEffort(ctx, func(p redis.Pipeliner) {
		p.ZAdd(ctx, s.keys.managers(), redis.Z{Score: float64(now.Add(within)), Member: s.boot})
		p.ZRemRangeByScore(ctx, s.keys.managers(), "-inf", "("+now.String())
	})
}

// ManagerLeft notes that this client waits no more.
func (s *Store) ManagerLeft(ctx context.Context) error {
	return s.pipeline(ctx, func(p redis.Pipeliner) {
		p.ZRem(ctx, s.keys.managers(), s.boot)
		p.Del(ctx, s.keys.wakeManager(s.boot))
	})
}

// waitingManagers remembers for a moment whom to wake.
type waitingManagers struct {
	mu    sync.Mutex
	boots []string
	read  time.Time
}

const (
	mostManagers   = 16  // woken at once
	managersRead   = 256 // looked at, those that were seen last
	managersCached = 100 * time.Millisecond
)

// managersToWake returns the clients to wake when a task is judged. One that is missing
// here waits a little longer, so an error is none.
func (s *Store) managersToWake(ctx context.Context) []string {
	w := &s.waiting
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.read) < managersCached {
		return w.boots
	}
	boots, err := s.waitingNow(ctx)
	w.read = time.Now() // also after an error: it is not asked about at each call
	if err == nil {
		w.boots = boots
	}
	return w.boots
}

// waitingNow returns the managers to wake: first those that have taken all their tokens, and of these first
// the ones that were seen last. A manager that crashed takes none, so it is behind all others after it was woken once,
// however many have crashed.
func (s *Store) waitingNow(ctx context.Context) ([]string, error) {
	boots, err := s.rdb.ZRangeArgs(ctx, redis.ZRangeArgs{Key: s.keys.managers(), Start: 0, Stop: managersRead - 1, Rev: true}).Result()
	if err != nil || len(boots) <= mostManagers {
		return boots, err
	}
	tokens := make([]*redis.IntCmd, len(boots))
	_, err = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, boot := range boots {
			tokens[i] = p.LLen(ctx, s.keys.wakeManager(boot))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	left := map[string]int64{}
	for i, boot := range boots {
		left[boot] = min(tokens[i].Val(), 1)
	}
	slices.SortStableFunc(boots, func(a, b string) int { return cmp.Compare(left[a], left[b]) })
	return boots[:mostManagers], nil
}
