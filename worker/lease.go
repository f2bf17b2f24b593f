package worker

import (
	"context"
	"errors"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// Once a task's end_before has passed, the worker asks once per expiryPause whether the server has expired the task.
// It waits for expirySlack before it asks the first time, so that the server has time to expire the task.
const (
	expiryPause = time.Second
	expirySlack = 20 * time.Millisecond
)

// moreReportsPause is the pause before the next report of a round that has more data than one report can contain.
const moreReportsPause = 100 * time.Millisecond

// followPause is the time between two reports of a round that a user watches.
const followPause = time.Second

// keepLeases renews the leases of all executions until ctx ends. That includes executions that have ended, until
// Redis has accepted their results.
func (s *session) keepLeases(ctx context.Context) {
	last, soon := time.Now(), false
	for {
		pause := s.nextRenewal(last, time.Now())
		if soon { // renew all leases, so that the many reports of one round do not delay the renewals of the others
			pause = min(pause, moreReportsPause)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.renewed:
			continue // there are new executions
		case <-time.After(pause):
		}
		last = time.Now()
		if isLost(context.Cause(s.stopping)) {
			continue // the tasks belong to the worker that has the name now
		}
		more, err := s.renew(ctx, s.executions(), false)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("the leases could not be renewed, trying again", "error", err)
		}
		soon = len(more) > 0
	}
}

// nextRenewal returns how long to wait before the next renewal: until a third of the lease has passed since the last
// renewal. The wait is shorter if a task may expire before that, or if a user watches a task.
func (s *session) nextRenewal(last, at time.Time) time.Duration {
	next := last.Add(s.heartbeatPause()).Sub(at)
	for _, e := range s.executions() {
		next = min(next, e.nextRenewal(last, at))
	}
	return next
}

func (e *execution) nextRenewal(last, at time.Time) time.Duration {
	next := last.Add(e.s.heartbeatPause()).Sub(at)
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

// renew renews the leases of executions, and sends the reports of their rounds. It ends executions whose tasks are
// lost, and returns executions that have more to report. After an error, the programs keep running.
func (s *session) renew(ctx context.Context, executions []*execution, final bool) (more []*execution, err error) {
	select {
	case s.renewing <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-s.renewing }()
	all := make([]renewal, len(executions))
	for i, e := range executions {
		all[i] = e.renewalWithReport(final)
	}
	err = s.renewAll(ctx, all)
	for i := range all {
		if all[i].more {
			more = append(more, all[i].e)
		}
	}
	return more, err
}

// A renewal is one execution's part of a call that renews leases.
type renewal struct {
	e        *execution
	sent     redisstate.Renewal
	accepted func() // called when Redis has accepted the report
	more     bool   // the round wrote more than the report contains
}

// renewAll sends renewals in one call. If Redis refuses the call, renewAll sends them one by one, so that a refused renewal
// costs no other execution its lease.
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
		return s.renewWithoutReport(ctx, &all[0], err)
	}
	for i := range all {
		all[i].more = false
	}
	return err
}

// renewWithoutReport renews a lease, and drops the report that Redis has refused. Redis would refuse this report again.
func (s *session) renewWithoutReport(ctx context.Context, r *renewal, refusal error) error {
	renewed, err := s.store.Renew(ctx, tdf.For(s.cfg.Lease), r.e.renewal())
	if err != nil {
		r.more = false
		return err
	}
	r.e.log.Warn("a report of the running round is left out: redis refuses it", "error", refusal)
	r.renewed(renewed, 0)
	return nil
}

// renewed handles the i-th part of Redis's answer, which is about this renewal.
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

// renewal returns a renewal of the lease without a report.
func (e *execution) renewal() redisstate.Renewal { return renewalOf(e.task, e.claim) }

func renewalOf(t *tdf.Task, claim string) redisstate.Renewal {
	return redisstate.Renewal{ID: t.ID, Round: t.Round, Claim: claim, Until: t.EndBefore}
}

func (e *execution) renewalWithReport(final bool) renewal {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := renewal{e: e, sent: e.renewal(), accepted: func() {}}
	if e.roundIO == nil {
		return r
	}
	r.sent.Report, r.accepted, r.more = e.liveReport(e.roundIO, final)
	e.reportedLive = e.reportedLive || r.sent.Report.Tail != nil || r.sent.Report.PID != 0
	return r
}

// renewOne sends one renewal, and returns the time by Redis's clock. After an error, the caller must end the execution.
// The error is a *[tdf.StateError] if the task no longer belongs to this worker.
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

// reportLast reports the files of a round that has ended: all except result.json and files/.
func (e *execution) reportLast(x *roundIO) {
	defer e.setIO(nil)
	e.mu.Lock()
	r, _, _ := e.liveReport(x, true)
	e.mu.Unlock()
	if r.Tail == nil && r.Progress == nil && r.Checkpoint == nil && len(r.Updates) == 0 {
		return // most rounds report nothing
	}
	ctx, end := e.s.outlive(e.s.stopping, e.s.reportBound(), e.s.answer)
	defer end(nil)
	for more := []*execution{e}; len(more) > 0; {
		var err error
		if more, err = e.s.renew(ctx, more, true); err != nil {
			e.log.Warn("the last progress, checkpoint and updates of a round could not be reported", "error", err)
			return
		}
	}
}
