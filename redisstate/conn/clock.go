package conn

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
)

// A Clock remembers when Redis's clock was last read.
type Clock struct {
	mu     sync.Mutex
	seen   task.Time // a time by Redis's clock,
	seenAt time.Time // and by this machine's clock
}

// Now returns the time by Redis's clock.
func (s *Conn) Now(ctx context.Context) (task.Time, error) {
	now, err := Ask(ctx, s, "read the clock", func(r redis.Cmdable) *redis.TimeCmd { return r.Time(ctx) })
	if err != nil {
		return 0, err
	}
	s.Clock.See(task.At(now))
	return task.At(now), nil
}

// See records a time of Redis's clock.
func (c *Clock) See(now task.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen, c.seenAt = now, time.Now()
}

// About returns the approximate time by Redis's clock, or 0 if it is unknown.
func (c *Clock) About() task.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == 0 {
		return 0
	}
	return c.seen.Add(task.For(time.Since(c.seenAt)))
}
