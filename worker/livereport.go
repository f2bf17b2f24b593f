package worker

import (
	"context"
	"time"
)

// moreReportsPause is the pause before the next report of a round that has more data than one report can contain.
const moreReportsPause = 100 * time.Millisecond

// followPause is the time between two reports of a round that a user watches.
const followPause = time.Second

// reportRunning reports the rounds that run, until ctx ends.
func (s *supervisor) reportRunning(ctx context.Context) {
	last, soon := time.Now(), false
	for {
		pause := s.nextReport(last, time.Now())
		if soon {
			pause = min(pause, moreReportsPause)
		}
		if !wait(ctx, s.after(pause)) {
			return
		}
		last = time.Now()
		if s.nameLost.Load() != nil {
			continue // the tasks belong to the worker that has the name now
		}
		more, err := s.reportRounds(ctx, s.executions(), false)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("running rounds could not be reported, trying again", "error", err)
		}
		soon = len(more) > 0
	}
}

// nextReport returns how long to wait before the next report: as long as between two renewals, or shorter if a user
// watches a task.
func (s *supervisor) nextReport(last, at time.Time) time.Duration {
	pause := s.heartbeatPause()
	for _, e := range s.executions() {
		if e.followed.Load() {
			pause = min(pause, followPause)
		}
	}
	return last.Add(pause).Sub(at)
}

// reportRounds sends the reports of executions, which also renews their leases. It ends executions whose tasks are
// lost, and returns executions that have more to report. After an error, the programs keep running.
func (s *supervisor) reportRounds(ctx context.Context, executions []*execution, final bool) (more []*execution,
	err error,
) {
	select {
	case s.reportingLive <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-s.reportingLive }()
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

func (e *execution) renewalWithReport(final bool) renewal {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := renewal{e: e, sent: e.renewal(), accepted: func() {}}
	if e.roundIO == nil {
		return r
	}
	r.sent.Report, r.accepted, r.more = e.liveReport(e.roundIO, final)
	r.sent.Report.Runs = e.isPrefetched() && !final
	e.reportedLive = e.reportedLive || r.sent.Report.Tail != nil
	return r
}

// reportLast reports the files of a round that has ended: all except result.json.
func (e *execution) reportLast(x *roundIO) {
	defer e.setIO(nil)
	e.mu.Lock()
	r, _, _ := e.liveReport(x, true)
	e.mu.Unlock()
	if r.Tail == nil && r.Progress == nil && r.Checkpoint == nil && len(r.Updates) == 0 {
		return // most rounds report nothing
	}
	for more := []*execution{e}; len(more) > 0; {
		var err error
		if more, err = e.s.reportRounds(e.s.reporting, more, true); err != nil {
			e.log.Warn("the last progress, checkpoint and updates of a round could not be reported", "error", err)
			return
		}
	}
}
