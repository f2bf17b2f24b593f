package worker

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/broker"
)

// longestPause bounds the pause between two attempts to report, and between a claim that failed and the next one.
const longestPause = 5 * time.Second

// A backlog has the reports that Redis has refused. The worker sends them again after a pause, which grows from try
// to try.
type backlog struct {
	refused []*execution
	pause   time.Duration
	again   <-chan time.Time // nil if the backlog is empty
	logged  time.Time        // when the error was last logged
}

// maxReports is how many calls with reports are under way at the same time. While Redis carries out one of them, the
// worker runs the tasks that came with the answer to another one.
const maxReports = 2

// An answer is the outcome of one call with reports.
type answer struct {
	refused []*execution // the reports that Redis has refused
	err     error
	retried bool // the call also sent the backlog's earlier reports
}

// report sends the reports of executions that have ended, until ctx ends. The executions that end during a call are
// reported together in a later call. When the context bound ends, report interrupts its calls and drops the backlog.
func (s *supervisor) report(ctx, bound context.Context) {
	defer context.AfterFunc(bound, s.reported.give)()
	var b backlog
	done := make(chan answer, maxReports)
	for under := 0; ; {
		ended, again, due := s.reported, b.again, false
		if under == maxReports {
			ended, again = nil, nil
		}
		select {
		case <-ended:
			due = bound.Err() != nil
		case <-again:
			due = true
		case r := <-done:
			under--
			s.putOff(&b, r)
		case <-ctx.Done():
			return
		}
		if n := s.gather(); !due && (n == 0 || under > 0 && n < s.worthACall() || s.mayGather()) {
			continue
		}
		all := s.concluded()
		most := 1
		if slices.ContainsFunc(all, (*execution).isWaiting) { // otherwise, one large call costs Redis less
			most = maxReports - under
		}
		parts := inParts(all, most)
		if due {
			parts, b.refused = [][]*execution{append(b.refused, all...)}, nil
		}
		for _, part := range parts {
			under++
			s.loops.Go(func() {
				refused, err := s.reportAll(bound, part)
				done <- answer{refused, err, due}
			})
		}
	}
}

// worthACall is the smallest number of reports that are sent while another call is under way. Calls with fewer reports
// would cost Redis more time than they save.
func (s *supervisor) worthACall() int { return max(leastPart, 9*s.slots()/(10*maxReports)) }

// leastPart is the smallest number of reports that is worth a call of its own.
const leastPart = 8

// inParts splits reports into at most n parts for calls of their own.
func inParts(all []*execution, n int) [][]*execution {
	n = min(n, max(1, len(all)/leastPart))
	return slices.Collect(slices.Chunk(all, max(1, (len(all)+n-1)/n)))
}

// logPause is the shortest time between two log messages about a backlog.
const logPause = time.Minute

// putOff adds the reports that Redis has refused to the backlog.
func (s *supervisor) putOff(b *backlog, r answer) {
	for _, e := range r.refused {
		e.refused = true
	}
	b.refused = append(b.refused, r.refused...)
	if len(b.refused) == 0 {
		if r.retried {
			*b = backlog{}
		}
		return
	}
	if r.err != nil && time.Since(b.logged) > logPause {
		s.log.Error("rounds could not be reported, trying again", "rounds", len(b.refused), "error", r.err)
		b.logged = time.Now()
	}
	if b.again == nil || r.retried {
		b.pause = min(max(2*b.pause, errorPause), longestPause)
		b.again = s.after(b.pause)
	}
}

// gather lets other executions that are about to end do so, so that one call reports them all. It returns how many
// executions have ended.
func (s *supervisor) gather() int {
	for before := -1; ; {
		s.mu.Lock()
		ended := len(s.ended)
		s.mu.Unlock()
		if ended == before {
			return ended
		}
		before = ended
		runtime.Gosched()
	}
}

// concluded returns the executions that have ended since the last call, with their reports. It leaves out executions
// whose tasks no longer belong to this worker.
func (s *supervisor) concluded() []*execution {
	s.mu.Lock()
	ended := s.ended
	s.ended, s.stock.waited, s.stock.ripe = nil, false, false
	s.mu.Unlock()
	all := ended[:0]
	for _, e := range ended {
		if e.conclude() {
			all = append(all, e)
			continue
		}
		s.drop(e, e.cause)
	}
	return all
}

// reportAll reports executions. It returns those whose reports Redis has refused, and the error.
func (s *supervisor) reportAll(ctx context.Context, all []*execution) (refused []*execution, err error) {
	var results, others []*execution
	for _, e := range all {
		if e.report.Way == broker.Done && !e.report.OpensTasks() {
			results = append(results, e)
		} else {
			others = append(others, e)
		}
	}
	err = s.reportAndClaim(ctx, results)
	err = errors.Join(err, s.broker.Report(ctx, nil, reportsOf(others)...))
	for _, e := range all {
		if e.mustReport {
			refused = append(refused, e)
		}
	}
	if ctx.Err() == nil {
		return refused, err
	}
	for _, e := range refused { // the worker stops before Redis has accepted them
		e.logUndelivered(e.report.Err)
		s.freeDropped(e)
	}
	return nil, nil
}

func reportsOf(all []*execution) []*broker.Delivery {
	reports := make([]*broker.Delivery, len(all))
	for i, e := range all {
		reports[i] = &e.report
	}
	return reports
}

// answered handles the answer to an execution's report. A report is dropped only if the task no longer belongs to this
// worker, or if ctx ends.
func (e *execution) answered(ctx context.Context) {
	answer := e.report.Err
	e.mustReport = answer != nil && !errors.As(answer, new(*tdf.StateError))
	switch {
	case e.mustReport:
	case answer != nil:
		e.s.drop(e, answer)
	default:
		e.reportAccepted(ctx)
		e.s.freeAfterPause(e, e.report.Succeeds())
	}
}

// drop drops the report of an execution whose task no longer belongs to this worker.
func (s *supervisor) drop(e *execution, reason error) {
	e.logDropped(reason)
	s.freeDropped(e)
}

func (e *execution) logDropped(reason error) { e.log.Info("dropped", "reason", reason) }

// logUndelivered logs that the worker stops before Redis has accepted a report. If the round printed something, only
// its output files have the output now. settleOutput then keeps the files of the slot, and logs where they are. The
// other files are where the configuration says.
func (e *execution) logUndelivered(reason error) {
	if e.cause != nil || e.record == nil {
		e.logDropped(reason)
		return
	}
	e.log.Warn("the result is dropped", "reason", reason)
}
