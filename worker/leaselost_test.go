package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// untilItsEnd is a Runner whose rounds run until their context ends.
var untilItsEnd goRunner = func(ctx context.Context, _ *Round) (Ended, error) {
	<-ctx.Done()
	return Ended{}, ctx.Err()
}

// With on_lease_lost=end, a worker that cannot reach Redis ends its program when the lease runs out. It releases the
// task when Redis is back (docs/guarantees.md, "Leases").
func TestAProgramEndsWithItsLease(t *testing.T) {
	w := newWorld(t)
	w.cfg.OnLeaseLost = "end"
	w.script("p", waiting)
	p := w.pipe()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	id := w.open(p.path)
	s, end := w.supervisor(w.workerOn(broker.WholeOf(w.connect(proxy.Addr))))
	_, err := s.claimNow(1)
	must(t, err)
	p.begun()
	proxy.Refuse()
	proxy.Cut()
	longAgo := time.Now().Add(-2 * testLease)
	s.executions()[0].renewed.Store(&longAgo)
	s.claimed.give() // makes the worker check the leases now
	p.ended()        // the program ends while Redis is away
	proxy.Resume()
	end()
	one := w.task(id)
	expect.Equal(t, one.State, tdf.Open)
	expect.Equal(t, one.Round, 1)
	expect.Equal(t, one.Releases, 1)
	has(t, one.Log, "released: the lease ran out before it could be renewed")
}

// A program continues to run while its lease is renewed.
func TestOnlyOverdueProgramsEnd(t *testing.T) {
	w := newWorld(t)
	w.cfg.Lease = time.Hour
	w.open("")
	worker := w.running(untilItsEnd)
	s, end := w.supervisor(worker)
	_, err := s.claimNow(1)
	must(t, err)
	e, now := s.executions()[0], time.Now()
	for _, c := range []struct{ renewed, next time.Duration }{{0, time.Hour}, {-59 * time.Minute, time.Minute}} {
		renewed := now.Add(c.renewed)
		e.renewed.Store(&renewed)
		expect.Equal(t, s.endWithoutLease(now), c.next, c.renewed)
		expect.NoError(t, e.ctx.Err(), c.renewed)
	}
	s.endWithoutLease(now.Add(time.Minute))
	got := context.Cause(e.ctx)
	expect.True(t, got == errLeaseEnded, "after its lease", got)
	end()
}

// A lease counts from the time when the call was sent. If the answer is late, another worker may have started the task
// before the answer arrives.
func TestALeaseCountsFromItsCall(t *testing.T) {
	w := newWorld(t)
	w.cfg.Lease = time.Hour
	w.cfg.OnLeaseLost = onLeaseLostEnd
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	worker := w.workerOn(broker.WholeOf(w.connect(proxy.Addr)))
	worker.runner = untilItsEnd
	s, end := w.supervisor(worker)
	_, err := s.claimNow(1) // also reads the memory of Redis, so that the next claim does not
	must(t, err)
	w.open("")
	late := func(call func() error) (arriving time.Time) {
		t.Helper()
		proxy.Hang()
		done := make(chan error)
		go func() { done <- call() }()
		eventually(t, "a held call", func() bool { return proxy.Held() > 0 })
		arriving = time.Now()
		proxy.Resume()
		must(t, <-done)
		return arriving
	}
	counts := func(what string, arriving time.Time) {
		t.Helper()
		renewed := *s.executions()[0].renewed.Load()
		expect.True(t, renewed.Before(arriving), what, renewed.Sub(arriving))
	}
	counts("a claim", late(func() error { _, err := s.claimNow(1); return err }))
	e := s.executions()[0]
	counts("a renewal", late(func() error { _, err := s.reportRounds(t.Context(), s.executions(), false); return err }))
	counts("one renewal", late(func() error { _, err := e.renewOne(t.Context(), e.renewal()); return err }))
	s.endWithoutLease(e.renewed.Load().Add(time.Hour))
	got := context.Cause(e.ctx)
	expect.True(t, got == errLeaseEnded, "after its lease", got)
	end()
}

// An outage during a claim does not use up the new leases. The worker renews them before the programs begin.
func TestALateClaimIsRenewedFirst(t *testing.T) {
	w := newWorld(t)
	w.cfg.Lease = time.Hour
	w.cfg.OnLeaseLost = onLeaseLostEnd
	w.open("")
	worker := w.running(untilItsEnd)
	worker.broker = broker.NewDirect(sentLongAgo{worker.store}, worker.name, worker.offer, 3600)
	s, end := w.supervisor(worker)
	_, err := s.claimNow(1)
	must(t, err)
	e := s.executions()[0]
	s.endWithoutLease(time.Now())
	expect.True(t, e.ctx.Err() == nil, "the program ends as soon as it begins", context.Cause(e.ctx))
	s.endWithoutLease(time.Now().Add(2 * time.Hour))
	end()
}

// If the leases of a late claim cannot be renewed, the programs of its tasks end at once, not at the next check of the
// leases.
func TestALateClaimThatIsNotRenewed(t *testing.T) {
	w := newWorld(t)
	w.cfg.Lease = time.Hour
	w.cfg.OnLeaseLost = onLeaseLostEnd
	id := w.open("")
	worker := w.running(untilItsEnd)
	worker.broker = broker.NewDirect(neverRenewed{sentLongAgo{worker.store}}, worker.name, worker.offer, 3600)
	s, end := w.supervisor(worker)
	_, err := s.claimNow(1)
	must(t, err)
	end()
	has(t, w.task(id).Log, "released: the lease ran out before it could be renewed")
}

// neverRenewed is a store that renews no lease.
type neverRenewed struct{ broker.DirectStore }

func (neverRenewed) Renew(context.Context, task.Seconds, ...redisstate.LeaseRenewal) (redisstate.RenewResult, error) {
	return redisstate.RenewResult{}, errors.New("it does not renew")
}

// sentLongAgo is a store that reports each claim as sent two hours before the answer.
type sentLongAgo struct{ broker.DirectStore }

func (s sentLongAgo) Turn(
	ctx, claiming context.Context, r redisstate.ClaimParams, results ...rules.Move,
) ([]redisstate.Outcome, redisstate.ClaimResult, error, error) {
	outcomes, c, err, claimErr := s.DirectStore.Turn(ctx, claiming, r, results...)
	c.Sent = c.Sent.Add(-2 * time.Hour)
	return outcomes, c, err, claimErr
}
