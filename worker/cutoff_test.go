package worker

import (
	"context"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/redistest"
)

// on_lease_lost=end: a worker that is cut off ends its program when the lease is over, and gives the task back when Redis
// can be reached again. docs/guarantees.md, "Leases".
func TestAProgramEndsWithItsLease(t *testing.T) {
	w := newWorld(t)
	w.cfg.Lease = 300 * time.Millisecond
	w.cfg.OnLeaseLost = "end"
	w.script("p", waiting)
	p := w.pipe()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	id := w.open(p.path)
	wait := w.background(t.Context(), w.workerOn(w.connect(proxy.Addr)))
	p.begun()
	proxy.Refuse()
	proxy.Cut()
	p.ended() // while it is cut off
	proxy.Resume()
	wait()
	task := w.task(id)
	if task.State != tdf.Open || task.Round != 1 || task.Releases != 1 {
		t.Errorf("it is %s in round %d: %s", task.State, task.Round, task.Log)
	}
	has(t, task.Log, "given back: the lease ran out before it could be renewed")
}

// As long as a lease is renewed, its program runs on.
func TestOnlyOverdueProgramsEnd(t *testing.T) {
	w := newWorld(t)
	w.cfg.Lease = time.Hour
	w.open("")
	worker := w.running(func(ctx context.Context, _ *Round) (Ended, error) {
		<-ctx.Done()
		return Ended{}, ctx.Err()
	})
	s, end := worker.open(t.Context())
	_, _, err := s.claim(1, false)
	must(t, err)
	e, now := s.holds()[0], time.Now()
	for _, c := range []struct{ renewed, next time.Duration }{{0, time.Hour}, {-59 * time.Minute, time.Minute}} {
		renewed := now.Add(c.renewed)
		e.renewed.Store(&renewed)
		if got := s.endOverdue(now); got != c.next || e.ctx.Err() != nil {
			t.Errorf("renewed %v ago: next in %v, %v", c.renewed, got, context.Cause(e.ctx))
		}
	}
	s.endOverdue(now.Add(time.Minute))
	if got := context.Cause(e.ctx); got != errCutOff {
		t.Errorf("after its lease: %v", got)
	}
	end()
}
