package worker

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

type reporter interface {
	Turn(
		ctx, claiming context.Context, r redisstate.ClaimRequest, results ...tdf.Move,
	) (o []redisstate.Outcome, c redisstate.Claimed, err, claimErr error)
	Apply(ctx context.Context, who string, units ...redisstate.Unit) ([]redisstate.Outcome, error)
}

// longestPause bounds the pause between two attempts to report, and between a claim that failed and the next one.
const longestPause = 5 * time.Second

// A backlog has the reports that Redis has refused. The worker sends them again after a pause, which grows from try
// to try.
type backlog struct {
	refused []delivery
	pause   time.Duration
	again   <-chan time.Time // nil if the backlog is empty
	logged  time.Time        // when the error was last logged
}

// maxReports is how many calls with reports are under way at the same time. While Redis carries out one of them, the
// worker runs the tasks that came with the answer to another one.
const maxReports = 2

// An answer is the outcome of one call with reports.
type answer struct {
	refused []delivery // the reports that Redis has refused
	err     error
	retried bool // the call also sent the backlog's earlier reports
}

// report sends the reports of executions that have ended, until ctx ends. The executions that end during a call are
// reported together in a later call. When the context bound ends, report interrupts its calls and drops the backlog.
func (s *session) report(ctx, bound context.Context) {
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
		if n := s.gather(); !due && (n == 0 || under > 0 && n < s.worthACall()) {
			continue
		}
		deliveries := s.deliveries()
		parts := inParts(deliveries, maxReports-under)
		if due {
			parts, b.refused = [][]delivery{append(b.refused, deliveries...)}, nil
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
func (s *session) worthACall() int { return max(leastPart, 9*s.slots()/(10*maxReports)) }

// leastPart is the smallest number of reports that is worth a call of its own.
const leastPart = 8

// inParts splits reports into at most n parts for calls of their own.
func inParts(all []delivery, n int) [][]delivery {
	n = min(n, max(1, len(all)/leastPart))
	return slices.Collect(slices.Chunk(all, max(1, (len(all)+n-1)/n)))
}

// logPause is the shortest time between two log messages about a backlog.
const logPause = time.Minute

// putOff adds the reports that Redis has refused to the backlog.
func (s *session) putOff(b *backlog, r answer) {
	for i := range r.refused {
		r.refused[i].refused = true
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
func (s *session) gather() int {
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

// deliveries returns the reports of the executions that have ended since the last call. It leaves out executions
// whose tasks no longer belong to this worker.
func (s *session) deliveries() []delivery {
	s.mu.Lock()
	ended := s.ended
	s.ended = nil
	s.mu.Unlock()
	all := make([]delivery, 0, len(ended))
	for _, e := range ended {
		if d := e.delivery(e.result); d.move.Verb != "" {
			all = append(all, d)
			continue
		}
		e.logDropped(e.cause)
		s.freeDropped(e)
	}
	return all
}

// reportAll sends reports, and reuses their memory. It returns the reports that Redis has refused, and the error.
func (s *session) reportAll(ctx context.Context, deliveries []delivery) (refused []delivery, err error) {
	var timedOut, opening, others []delivery
	results := deliveries[:0] // most reports stay where they are
	for _, d := range deliveries {
		switch {
		case d.opens:
			opening = append(opening, d)
		case d.move.Verb == tdf.VerbExecute:
			results = append(results, d)
		case d.move.Verb == tdf.VerbTimeOut:
			timedOut = append(timedOut, d)
		default:
			others = append(others, d)
		}
	}
	refused, err = s.reportAndClaim(ctx, results)
	ready, unread, readErr := s.complete(ctx, opening)
	more, otherErr := s.deliver(ctx, slices.Concat(others, s.decidedAgain(ctx, timedOut), ready), s.apply)
	return slices.Concat(refused, unread, more), errors.Join(err, readErr, otherErr)
}

// decidedAgain decides again about rounds that timed out. It first reads the properties that only these decisions need.
// Claims leave these properties out, because few rounds time out.
func (s *session) decidedAgain(ctx context.Context, timedOut []delivery) []delivery {
	if len(timedOut) == 0 {
		return nil
	}
	ids := make([]int64, len(timedOut))
	for i, d := range timedOut {
		ids[i] = d.e.task.ID
	}
	stored, err := s.store.Read(ctx, ids, redisstate.Want{Fields: redisstate.Rules})
	if err != nil {
		return timedOut // Redis will also refuse the reports, or the worker is stopping
	}
	for i, x := range stored {
		d := &timedOut[i]
		if t := x.Task; t != nil && t.State == tdf.Running && t.Round == d.e.task.Round {
			d.e.decidesOn = t
			d.move = d.e.delivery(d.e.result).move
		}
	}
	return timedOut
}

// A send is a function that sends reports, in several calls if necessary. If a call fails, the function returns the
// error, and the outcomes of the reports that earlier calls sent.
type send func(ctx context.Context, all []delivery) ([]redisstate.Outcome, error)

// one sends one report. The error is Redis's answer to it.
func (s send) one(ctx context.Context, d delivery) error {
	outcomes, err := s(ctx, []delivery{d})
	if err != nil {
		return err
	}
	return outcomes[0].Err
}

func (s *session) execute(ctx context.Context, all []delivery) ([]redisstate.Outcome, error) {
	outcomes, _, err, _ := s.store.Turn(ctx, s.awaiting, s.request(0), movesOf(all)...)
	return outcomes, err
}

func (s *session) apply(ctx context.Context, all []delivery) ([]redisstate.Outcome, error) {
	units := make([]redisstate.Unit, len(all))
	for i, d := range all {
		units[i] = redisstate.Unit{Moves: []tdf.Move{d.move}, Open: d.open, ByRound: len(d.open) > 0}
	}
	return s.store.Apply(ctx, s.name, units...)
}

// deliver sends reports in one call. If Redis refuses the call, deliver sends them one by one, so that a refused
// report does not delay the others. It returns the refused reports. A report is dropped only if the task no longer
// belongs to this worker, or if ctx ends (docs/guarantees.md, "Every call may be sent twice").
func (s *session) deliver(ctx context.Context, rest []delivery, send send) (refused []delivery, err error) {
	settle := func(d delivery, answer error) {
		if answer := s.answered(ctx, d, answer, send); answer != nil {
			refused, err = append(refused, d), answer
		}
	}
	for most := len(rest); len(rest) > 0; {
		n := min(most, len(rest))
		outcomes, callErr := send(ctx, rest[:n])
		for i, o := range outcomes {
			settle(rest[i], rest[i].refusal(o.Err))
		}
		rest = rest[len(outcomes):]
		switch {
		case callErr == nil:
		case ctx.Err() != nil:
			s.giveUp(append(refused, rest...), callErr)
			return nil, nil
		case n > 1:
			most = 1
		default:
			settle(rest[0], callErr)
			rest = rest[1:]
		}
	}
	return refused, err
}

// giveUp drops reports, because the worker stops before Redis has accepted them.
func (s *session) giveUp(all []delivery, why error) {
	for _, d := range all {
		d.e.logUndelivered(why)
		s.freeDropped(d.e)
	}
}

// answered handles Redis's answer to a report. It returns an error if Redis has refused the report.
func (s *session) answered(ctx context.Context, d delivery, err error, send send) error {
	if err == nil {
		d.accepted(ctx)
		d.e.stored = d.stored
		s.freeAfterPause(d.e, d.success)
		return nil
	}
	var unstorable *conn.UnstorableError
	var notOpened *notOpenedError
	var lost *tdf.StateError
	switch {
	case errors.As(err, &lost):
		s.drop(d, err)
		return nil
	case errors.As(err, &unstorable):
		d = d.e.withoutResult(unstorable)
	case errors.As(err, &notOpened):
		d = d.e.notOpened(notOpened)
	default:
		return err
	}
	err = send.one(ctx, d)
	if err != nil && !errors.As(err, &lost) {
		return err
	}
	return s.answered(ctx, d, err, send)
}

// drop drops a report of a task that no longer belongs to this worker.
func (s *session) drop(d delivery, reason error) {
	d.e.logDropped(reason)
	s.freeDropped(d.e)
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
