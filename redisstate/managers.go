package redisstate

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

// SeenManager notes that this client waits for judged tasks, and will be back within the span given.
func (s *Store) SeenManager(ctx context.Context, now tdf.Time, within tdf.Seconds) error {
	return s.note(ctx, func(p redis.Pipeliner) {
		p.ZAdd(ctx, s.keys.managers(), redis.Z{Score: float64(now.Add(within)), Member: s.boot})
		p.ZRemRangeByScore(ctx, s.keys.managers(), "-inf", "("+now.String())
	})
}

// GoneManager notes that this client waits no more.
func (s *Store) GoneManager(ctx context.Context) error {
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
	mostManagers = 16
	aMoment      = 100 * time.Millisecond
)

// managersToWake returns the clients to wake when a task is judged. One that is missing
// here waits a little longer, so an error is none.
func (s *Store) managersToWake(ctx context.Context) []string {
	w := &s.waiting
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.read) < aMoment {
		return w.boots
	}
	boots, err := s.rdb.ZRange(ctx, s.keys.managers(), 0, mostManagers-1).Result()
	w.read = time.Now() // also after an error: it is not asked about at each call
	if err == nil {
		w.boots = boots
	}
	return w.boots
}
