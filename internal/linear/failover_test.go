package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A writer is a manager whose writes a replica must confirm. It reads only its own tasks, because no replica may have
// confirmed the states of others.
type writer struct {
	h     *history
	name  string
	rand  *rand.Rand
	tasks []int64 // those whose last write was confirmed
}

// run makes calls through one connection, which waits this long for the replica.
func (w *writer) run(steps int, patience time.Duration) {
	cfg := w.h.config(w.h.redis.Addr)
	cfg.Replicas = config.Replicas{Wanted: 1, Timeout: patience}
	s, err := redisstate.Connect(w.h.Context(), cfg, w.h.space, testspace.Silent)
	if err != nil {
		w.h.problem("connect", err)
		return
	}
	defer s.Close()
	if w.h.connected != nil {
		w.h.connected(s)
	}
	s.Conn.ReportUnknown = true
	for range steps {
		if len(w.tasks) > 0 && w.rand.IntN(3) > 0 {
			w.move(s)
		} else {
			w.open(s)
		}
	}
}

func (w *writer) open(s *redisstate.Store) {
	d := w.h.add(task.Defaults("p", "rsync:/p/run.sh", ""))
	begun := w.h.tick()
	ids, err := s.Open(w.h.Context(), w.name, d)
	o := op{kind: string(rules.VerbOpen), input: d.Input}
	if !w.unknown(err) {
		o.id = ids[0]
		w.tasks = append(w.tasks, o.id)
	}
	w.h.record(begun, err != nil, o)
}

func (w *writer) unknown(err error) bool {
	if err != nil && !conn.IsUnconfirmed(err) {
		w.h.problem("confirmed write", err)
	}
	return err != nil
}

// move cancels, archives or reopens a task.
func (w *writer) move(s *redisstate.Store) {
	i := w.rand.IntN(len(w.tasks))
	stored, err := s.ReadOne(w.h.Context(), w.tasks[i], redisstate.Want{Fields: redisstate.Facts | redisstate.Rules})
	if err != nil {
		w.h.problem("read", err)
		return
	}
	t := stored.Task
	decide := map[task.State]func(*task.Task) (rules.Move, error){
		task.Open: rules.Cancel, task.Expired: rules.Archive, task.Archived: rules.Reopen,
	}
	m, err := decide[t.State](t)
	if err != nil {
		w.h.problem("decide", err)
		return
	}
	begun := w.h.tick()
	_, err = s.Apply(w.h.Context(), w.name, redisstate.Unit{Moves: []rules.Move{m}})
	w.h.record(begun, w.unknown(err), opOf(m))
	if err != nil {
		w.tasks = append(w.tasks[:i], w.tasks[i+1:]...)
	}
}

// failover makes a history in which a replica becomes the primary while clients write.
func (h *history) failover() {
	h.redis = redistest.Start(h, redistest.Replicates)
	replica := redistest.Start(h)
	h.begin()
	replica.Follow(h.redis)
	writers := make([]*writer, 4)
	for i := range writers {
		writers[i] = &writer{h: h, name: fmt.Sprint("w", i), rand: rand.New(rand.NewPCG(1, uint64(i)))}
	}
	run := func(steps int, patience time.Duration) {
		var all sync.WaitGroup
		for _, w := range writers {
			all.Go(func() { w.run(steps, patience) })
		}
		all.Wait()
	}
	run(20, 4*time.Second)
	replica.Follow(nil)
	run(4, 20*time.Millisecond)
	h.raw.Close()
	h.raw = redistest.Client(h, redis.Options{Addr: replica.Addr, DB: h.cfg.DB})
	s := h.connect(replica.Addr)
	h.readAll(s)
	expect.NoError(h, s.Close())
}

// What a replica has confirmed survives a failover to it. Without WAIT, it would not.
func TestFailover(t *testing.T) {
	h := &history{TB: t}
	h.failover()
	expect.Len(t, append(violations(t, h.ops), h.problems...), 0)
	confirmed := 0
	for _, o := range h.ops {
		if o.ends != never && o.kind != kindRead {
			confirmed++
		}
	}
	expect.Compare(t, confirmed, ">", 20, "calls were confirmed")

	h = &history{TB: t, connected: func(s *redisstate.Store) { s.Conn.Redis.AddHook(skipped{}) }}
	h.failover()
	expect.NotEqual(t, len(violations(t, h.ops)), 0, "without WAIT")
}

// skipped answers WAIT without asking Redis.
type skipped struct{ altered }

func (skipped) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (skipped) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		var sent []redis.Cmder
		for _, c := range all {
			if wait, ok := c.(*redis.Cmd); ok && c.Name() == "wait" {
				wait.SetVal(int64(1))
			} else {
				sent = append(sent, c)
			}
		}
		return next(ctx, sent)
	}
}
