package worker

import (
	"context"
	"errors"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// How often to ask whether a task has expired whose end_before is over, and how long to leave
// the server for it before that.
const (
	expiryPause = time.Second
	expirySlack = 20 * time.Millisecond
)

// moreNewsPause is how long the rest waits of what a round reports at once.
const moreNewsPause = 100 * time.Millisecond

// followPause is how often a round reports that somebody follows.
const followPause = time.Second

// keep renews the leases of all that is held, also while results wait for Redis, until ctx ends.
func (s *session) keep(ctx context.Context) {
	last, soon := time.Now(), false
	for {
		pause := s.nextRenewal(last, time.Now())
		if soon { // all others with it: what one round reports must not cost them their leases
			pause = min(pause, moreNewsPause)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.renewed:
			continue // there is more to keep
		case <-time.After(pause):
		}
		last = time.Now()
		if isLost(context.Cause(s.told)) {
			continue // what is held is another worker's to lose
		}
		more, err := s.renew(ctx, s.holds(), false)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("the leases could not be renewed, trying again", "error", err)
		}
		soon = len(more) > 0
	}
}

// nextRenewal says how long to wait at a time: a third of the lease since the last one, until an
// end_before is over, since the task may have expired then, and not long where somebody follows.
func (s *session) nextRenewal(last, at time.Time) time.Duration {
	next := last.Add(s.renewal()).Sub(at)
	for _, e := range s.holds() {
		next = min(next, e.nextRenewal(last, at))
	}
	return next
}

func (e *execution) nextRenewal(last, at time.Time) time.Duration {
	next := last.Add(e.s.renewal()).Sub(at)
	if e.followed.Load() {
		next = min(next, last.Add(followPause).Sub(at))
	}
	if e.task.EndBefore == tdf.Never {
		return next
	}
	c := e.clock.Load()
	left := (e.task.EndBefore.Sub(c.redis) - tdf.For(at.Sub(c.local))).Std()
	if left < 0 {
		return min(next, last.Add(expiryPause).Sub(at))
	}
	return min(next, left+expirySlack)
}

// renew renews the leases of executions, with what their rounds have to report; those of which
// that is not all are returned. Those that are lost are ended. An error is no such finding: the
// programs run on.
func (s *session) renew(ctx context.Context, executions []*execution, last bool) (more []*execution, err error) {
	select {
	case s.renewing <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-s.renewing }()
	all := make([]renewal, len(executions))
	for i, e := range executions {
		all[i] = e.renewalWithNews(last)
	}
	err = s.renewAll(ctx, all)
	for i := range all {
		if all[i].more {
			more = append(more, all[i].e)
		}
	}
	return more, err
}

// A renewal is what is sent for an execution.
type renewal struct {
	e        *execution
	sent     redisstate.Renewal
	accepted func() // to be called when Redis has taken what the round reports
	more     bool   // once it has, there is more
}

// renewAll sends renewals in one call, or where Redis refuses that each by itself: one that it refuses must not cost the
// others their leases.
func (s *session) renewAll(ctx context.Context, all []renewal) error {
	sent := make([]redisstate.Renewal, len(all))
	for i := range all {
		sent[i] = all[i].sent
	}
	renewed, err := s.store.Renew(ctx, tdf.For(s.cfg.Lease), sent...)
	var unstorable *redisstate.UnstorableError
	var forbidden *redisstate.ForbiddenError
	switch {
	case err == nil:
		for i := range all {
			all[i].renewed(renewed, i)
		}
		return nil
	case len(all) > 1 && ctx.Err() == nil:
		var refused []error
		for i := range all {
			refused = append(refused, s.renewAll(ctx, all[i:i+1]))
		}
		return errors.Join(refused...)
	case len(all) == 1 && (errors.As(err, &unstorable) || errors.As(err, &forbidden)):
		return s.renewWithout(ctx, &all[0], err)
	}
	for i := range all {
		all[i].more = false
	}
	return err
}

// renewWithout renews a lease without the report that Redis refuses. The report is not sent again: it would be refused
// again, and is larger than all else.
func (s *session) renewWithout(ctx context.Context, r *renewal, why error) error {
	renewed, err := s.store.Renew(ctx, tdf.For(s.cfg.Lease), r.e.renewal())
	if err != nil {
		r.more = false
		return err
	}
	r.e.log.Warn("what the round reports is left out: redis refuses it", "error", why)
	r.renewed(renewed, 0)
	return nil
}

// renewed acts on the i-th of Redis's answers.
func (r *renewal) renewed(all redisstate.Renewed, i int) {
	if lost := all.Lost[i]; lost != nil {
		r.more = false
		r.e.end(lost)
		return
	}
	r.e.leaseRenewed(all.Sent[i])
	r.e.followed.Store(all.Followed[i])
	r.accepted()
}

// renewal names the claim; what else it says is added by the caller.
func (e *execution) renewal() redisstate.Renewal { return renewalOf(e.task, e.claim) }

func renewalOf(t *tdf.Task, claim string) redisstate.Renewal {
	return redisstate.Renewal{ID: t.ID, Round: t.Round, Claim: claim, Until: t.EndBefore}
}

func (e *execution) renewalWithNews(last bool) renewal {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := renewal{e: e, sent: e.renewal(), accepted: func() {}}
	if e.desk == nil {
		return r
	}
	r.sent.Report, r.accepted, r.more = e.news(e.desk, last)
	e.told = e.told || r.sent.Report.Tail != nil || r.sent.Report.PID != 0
	return r
}

// renewOne returns the time by Redis's clock, or an error that ends the execution: the
// *[tdf.StateError] of a task that is not ours any more, or that of ctx.
func (e *execution) renewOne(ctx context.Context, r redisstate.Renewal) (tdf.Time, error) {
	renewed, err := e.s.store.Renew(ctx, tdf.For(e.s.cfg.Lease), r)
	if err != nil {
		return 0, err
	}
	if renewed.Lost[0] == nil {
		e.leaseRenewed(renewed.Sent[0])
	}
	return renewed.Now, renewed.Lost[0]
}

// reportLast reports what a round that has ended has to report beside its result.
func (e *execution) reportLast(d *desk) {
	defer e.show(nil)
	e.mu.Lock()
	r, _, _ := e.news(d, true)
	e.mu.Unlock()
	if r.Tail == nil && r.Progress == nil && r.Checkpoint == nil && len(r.Updates) == 0 {
		return // as most have nothing
	}
	ctx, end := e.s.outlive(e.s.told, e.s.reportBound(), e.s.answer)
	defer end(nil)
	for more := []*execution{e}; len(more) > 0; {
		var err error
		if more, err = e.s.renew(ctx, more, true); err != nil {
			e.log.Warn("the last of a round could not be reported", "error", err)
			return
		}
	}
}
