package worker

import (
	"context"
	"errors"
	"time"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// keepLeases renews the leases of all executions until ctx ends. That includes executions that have ended, until Redis
// has accepted their results. The renewals contain no reports, since a large report on a slow link may take longer than
// a lease.
func (s *supervisor) keepLeases(ctx context.Context) {
	for wait(ctx, s.after(s.heartbeatPause())) {
		if s.nameLost.Load() != nil {
			continue // the tasks belong to the worker that has the name now
		}
		if err := s.renewLeases(ctx, s.executions()); err != nil && ctx.Err() == nil {
			s.log.Warn("the leases could not be renewed, trying again", "error", err)
		}
	}
}

// renewLeases renews the leases of executions, without reports. It ends executions whose tasks are lost.
func (s *supervisor) renewLeases(ctx context.Context, executions []*execution) error {
	all := make([]renewal, len(executions))
	for i, e := range executions {
		all[i] = renewal{e: e, sent: e.renewal(), accepted: func() {}}
	}
	return s.renewAll(ctx, all)
}

// A renewal is one execution's part of a call that renews leases.
type renewal struct {
	e        *execution
	sent     redisstate.LeaseRenewal
	accepted func() // called when Redis has accepted the report
	more     bool   // the round wrote more than the report contains
}

// renewAll sends renewals in one call. If Redis refuses the call, renewAll sends them one by one, so that a refused
// renewal costs no other execution its lease.
func (s *supervisor) renewAll(ctx context.Context, all []renewal) error {
	sent := make([]redisstate.LeaseRenewal, len(all))
	for i := range all {
		sent[i] = all[i].sent
	}
	renewed, err := s.broker.Renew(ctx, sent...)
	var unstorable broker.Unstorable
	var forbidden *conn.ForbiddenError
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
func (s *supervisor) renewWithoutReport(ctx context.Context, r *renewal, refusal error) error {
	renewed, err := s.broker.Renew(ctx, r.e.renewal())
	if err != nil {
		r.more = false
		return err
	}
	r.e.log.Warn("a report of the running round is left out: redis refuses it", "error", refusal)
	r.renewed(renewed, 0)
	return nil
}

// renewed handles the i-th part of Redis's answer, which is about this renewal.
func (r *renewal) renewed(all redisstate.RenewResult, i int) {
	if lost := all.Lost[i]; lost != nil {
		r.more = false
		r.e.end(&lostError{lost})
		return
	}
	r.e.leaseRenewed(all.Sent[i])
	r.e.followed.Store(all.Followed[i])
	r.accepted()
}

// renewal returns a renewal of the lease without a report.
func (e *execution) renewal() redisstate.LeaseRenewal { return renewalOf(e.task, e.claim) }

func renewalOf(t *task.Task, claim string) redisstate.LeaseRenewal {
	return redisstate.LeaseRenewal{ID: t.ID, Round: t.Round, Claim: claim}
}

// holdEnd asks Redis, if necessary, to let the task neither expire nor time out before the result of its program can be
// reported. The program has ended in time, and its result needs up to d until the worker can report it.
func (e *execution) holdEnd(d time.Duration) {
	limit, c := task.For(d)+task.For(reportBound), e.clock.Load()
	left := min(e.task.Timeout+rules.TimeoutMargin, e.task.EndBefore.Sub(c.redis)) - task.For(time.Since(c.local))
	if left > limit {
		return
	}
	r := renewal{e: e, sent: e.renewal(), accepted: func() {}}
	r.sent.Ended, r.sent.Limit = true, limit
	e.s.loops.Go(func() {
		_ = e.s.renewAll(e.s.reporting, []renewal{r}) // keepLeases gets the same error, and logs it
	})
}

// renewOne sends one renewal, and returns the time by Redis's clock. After an error, the caller must end the execution.
// The error is a *lostError if the task no longer belongs to this worker.
func (e *execution) renewOne(ctx context.Context, r redisstate.LeaseRenewal) (task.Time, error) {
	renewed, err := e.s.broker.Renew(ctx, r)
	if err != nil {
		return 0, err
	}
	if lost := renewed.Lost[0]; lost != nil {
		return 0, &lostError{lost}
	}
	e.leaseRenewed(renewed.Sent[0])
	return renewed.Now, nil
}
