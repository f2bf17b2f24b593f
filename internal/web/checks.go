package web

import (
	"context"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/redisstate/conn"
)

// checks finds out when streams must end because their session or token is no longer valid. All streams of a session
// share a check, so that many open pages cost Redis no more than one. The zero value is ready.
type checks struct {
	mu  sync.Mutex
	all map[any]*check
}

// A check asks again and again whether a session or a token is still valid, as long as it has streams.
type check struct {
	holds   func(context.Context) bool
	streams map[*func()]bool // what ends each stream
	stop    context.CancelFunc
	loop    sync.WaitGroup
}

// enter calls end as soon as holds has returned false. holds is called at each pause until the last stream with this
// key has left, with a context that does not belong to any stream. leave waits for the call of holds that it
// interrupts.
func (c *checks) enter(key any, pause time.Duration, holds func(context.Context) bool, end func()) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.all[key]
	if of == nil {
		ctx, stop := context.WithCancel(context.Background())
		of = &check{holds: holds, streams: map[*func()]bool{}, stop: stop}
		if c.all == nil {
			c.all = map[any]*check{}
		}
		c.all[key] = of
		of.loop.Go(func() { c.keep(ctx, key, of, pause) })
	}
	of.streams[&end] = true
	return func() {
		if c.remove(key, of, &end) {
			of.stop()
			of.loop.Wait()
		}
	}
}

// remove removes a stream from a check, and reports whether it was the last one.
func (c *checks) remove(key any, of *check, stream *func()) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(of.streams, stream)
	if last = len(of.streams) == 0; last {
		c.forget(key, of)
	}
	return last
}

// forget makes the next stream with this key begin another check. The caller holds the lock.
func (c *checks) forget(key any, of *check) {
	if c.all[key] == of {
		delete(c.all, key)
	}
}

func (c *checks) keep(ctx context.Context, key any, of *check, pause time.Duration) {
	for conn.Sleep(ctx, pause) {
		if !of.holds(ctx) {
			c.end(key, of)
			return
		}
	}
}

// end ends all streams of a check.
func (c *checks) end(key any, of *check) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(key, of)
	for stream := range of.streams {
		(*stream)()
	}
}
