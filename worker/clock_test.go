package worker

import (
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/server"
	"github.com/tdf-framework/tdf/internal/task"
)

// A redisClock is the clock of an embedded Redis that tests can set.
type redisClock struct {
	redis  *miniredis.Miniredis
	offset time.Duration
}

// leap changes the clock, which then stands until the next call.
func (c *redisClock) leap(by time.Duration) {
	c.offset += by
	c.redis.SetTime(time.Now().Add(c.offset))
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
	for name, by := range map[string]time.Duration{"back": -2 * testLease, "ahead": 2 * testLease} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m := miniredis.RunT(t)
			now := redisClock{redis: m}
			w.store = w.connect(m.Addr())
			// The leap begins a grace period. The server must look at the clock once before the leap, or it would not notice it.
			once := w.serving(func(cfg *config.Server) { cfg.OutageGrace = time.Hour })
			serve := func() { now.leap(0); once() }
			serve()
			w.script("p", "#!/bin/sh\necho begun >\"$1\"; read line <\"$1\"; echo done\n")
			p := w.pipe()
			began := time.Now()
			id := w.open(p.path, func(d *task.Properties) { d.Timeout = 600 })
			stop := w.start(w.worker())
			p.begun()
			now.leap(by)
			for range 3 {
				before := w.task(id).LeaseUntil
				w.timers.beat(t, "a renewal", func() bool { serve(); return w.task(id).LeaseUntil != before })
			}
			p.ended()
			p.release()
			eventually(t, "the end", func() bool { serve(); return w.task(id).State.Settled() })
			one := w.task(id)
			r := one.Current()
			expect.Equal(t, one.State, tdf.Succeeded)
			expect.Equal(t, r.Output, "done\n")
			expect.Equal(t, one.Losses+one.Timeouts+one.Round, 0)
			expect.Compare(t, r.Seconds, ">", 0)
			expect.Compare(t, r.Seconds, "<=", task.For(time.Since(began)))
			expect.Equal(t, strings.Count(one.Log, ": executed"), 1, "executed … times", one.Log)
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
