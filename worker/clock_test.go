package worker

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/server"
)

// A redisClock is the clock of an embedded Redis that tests can set.
type redisClock struct {
	redis  *miniredis.Miniredis
	mu     sync.Mutex
	offset time.Duration
}

// leap changes the clock, and returns when all clients of Redis get the new time.
func (c *redisClock) leap(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += by
	c.redis.SetTime(time.Now().Add(c.offset))
}

// drive sets the time of Redis repeatedly, until the test ends.
func (c *redisClock) drive(t *testing.T) {
	c.leap(0)
	stop, ticker := make(chan struct{}), time.NewTicker(time.Millisecond)
	var driving sync.WaitGroup
	driving.Go(func() {
		for {
			select {
			case <-ticker.C:
				c.leap(0)
			case <-stop:
				return
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		driving.Wait()
		ticker.Stop()
	})
}

// serving makes a server, and returns a function that runs one round of this server.
func (w *world) serving(change func(*config.Server)) (round func()) {
	w.Helper()
	cfg := expect.Result(config.DefaultServer(w.cfg.Namespace)).Value(w)
	change(&cfg)
	s := server.New("s1", cfg, w.store, w.logger())
	return func() {
		w.Helper()
		expect.Result(s.RunOnce(w.Context())).OK(w)
	}
}

// Redis's clock is changed while a program runs. The lease continues, and the round ends as usual.
func TestRedisClockIsSet(t *testing.T) {
	for name, by := range map[string]time.Duration{"back an hour": -time.Hour, "ahead an hour": time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Lease = 300 * time.Millisecond
			m := miniredis.RunT(t)
			now := redisClock{redis: m}
			now.drive(t)
			w.store = w.connect(m.Addr())
			// The round must not time out, however slowly the test runs, so the leap begins a grace period of an hour.
			// The server must look at the clock once before there is a task: if it looked for the first time after the
			// leap, it would not notice the leap, and on a slow machine it might find that the short lease has run out.
			serve := w.serving(func(cfg *config.Server) { cfg.OutageGrace = time.Hour })
			serve()
			w.script("p", "#!/bin/sh\necho begun >\"$1\"; read line <\"$1\"; echo done\n")
			p := w.pipe()
			began := time.Now()
			id := w.open(p.path, func(d *tdf.Properties) { d.Timeout = 600 })
			stop := w.start(w.worker())
			p.begun()
			now.leap(by)
			for range 3 {
				before := w.task(id).LeaseUntil
				eventually(t, "a renewal", func() bool { serve(); return w.task(id).LeaseUntil != before })
			}
			p.ended()
			p.release()
			eventually(t, "the end", func() bool { serve(); return w.task(id).State.Settled() })
			task := w.task(id)
			r := task.Current()
			expect.Equal(t, task.State, tdf.Succeeded)
			expect.Equal(t, r.Output, "done\n")
			expect.Equal(t, task.Losses+task.Timeouts+task.Round, 0)
			expect.Compare(t, r.Seconds, ">", 0)
			expect.Compare(t, r.Seconds, "<=", tdf.For(time.Since(began)))
			expect.Equal(t, strings.Count(task.Log, ": executed"), 1, "executed … times", task.Log)
			e := r.Entered
			expect.Compare(t, e[tdf.Open], "<=", e[tdf.Running])
			expect.Compare(t, e[tdf.Running], "<=", e[tdf.Executed])
			expect.Compare(t, e[tdf.Executed], "<=", e[tdf.Succeeded])
			next := w.open(p.path)
			p.begun()
			p.ended()
			p.release()
			eventually(t, "the end of the next task", func() bool { serve(); return w.task(next).State == tdf.Succeeded })
			stop()
		})
	}
}
