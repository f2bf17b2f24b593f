package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A Delivery reports the end of a round.
type Delivery struct {
	Task *task.Task // as it was claimed, or read later
	Ending
	Following []Following // the tasks that the round opens if it succeeds

	// Allowed returns an error if the round must not open these tasks. It may be nil.
	Allowed func([]task.Properties) error

	// Answered is called when Err is known. It may be nil.
	Answered func(context.Context)
	// Err is the answer to the report; nil if the report is accepted. With a *[rules.StateError], the task no longer
	// belongs to the worker. With any other error, the worker must send the report again.
	Err error

	// ResultLost means that the report says only how the round has ended, because Redis cannot store its result.
	ResultLost bool

	read        bool // Task has what decides whether it runs again
	seen, alone bool // see seeUnfit: alone means that no other live worker could run the task

	move rules.Move
	open []task.Properties // the tasks of Following, with all their properties
}

// Succeeds reports whether the report says that the round has succeeded.
func (d *Delivery) Succeeds() bool { return d.Way == Done && !d.Result.HasFailed(d.Task.FailOn) }

// OpensTasks reports whether the report opens tasks.
func (d *Delivery) OpensTasks() bool { return len(d.Following) > 0 && d.Opens(d.Task) }

// Decide decides what the end of the round means for its task. It reports whether there is anything to report: for a
// round that timed out, that may not be so.
func (d *Delivery) Decide() bool {
	if d.move = d.Move(d.Task); d.move.HasResult() && (d.read || d.Succeeds()) {
		d.move = d.move.Settled(d.Task, d.Result)
	}
	return d.move.Verb != ""
}

// needsRead reports whether the report needs more of the task than its claim has read.
func (d *Delivery) needsRead() bool { return d.Way == TimedOut || d.Way == Done && !d.Succeeds() }

// complete decides as Decide does, and completes the definitions of the tasks that the round opens. The task must have
// the properties that this needs. If the tasks cannot be opened, the round fails.
func (d *Delivery) complete(closed error) {
	d.open = nil
	if d.OpensTasks() {
		err := closed
		if err == nil {
			d.open, err = Properties(d.Task, d.Following)
		}
		if err == nil && d.Allowed != nil {
			err = d.Allowed(d.open)
		}
		if err != nil {
			d.failToOpen(err)
		}
	}
	d.Decide()
}

// failToOpen makes the round fail, because its tasks cannot be opened.
func (d *Delivery) failToOpen(err error) {
	d.open = nil
	d.NotOpened(err)
}

// change changes a report that Redis refuses, so that Redis can accept it. It reports whether it has.
func (d *Delivery) change(answer error) bool {
	var lasting Unstorable
	switch {
	case errors.As(answer, new(*rules.StateError)):
		return false
	case errors.Is(answer, conn.ErrFull), conn.IsUnconfirmed(answer): // the same report may succeed later
		return false
	case errors.As(answer, &lasting) && !d.ResultLost:
		d.loseResult(lasting)
	case answer != nil && len(d.open) > 0:
		d.failToOpen(answer)
	default:
		return false
	}
	d.complete(nil)
	return true
}

// loseResult leaves out what the round has printed and computed. The round fails, and its error says why.
func (d *Delivery) loseResult(err error) {
	r := &d.Result
	d.ResultLost = true
	d.Result = rules.Result{
		Exit: r.Exit, Refused: true, Reason: fmt.Sprintf("the round's result is lost: %v", err),
		Permanent: r.Permanent, Started: r.Started, ProgramSHA256: r.ProgramSHA256, ClearLive: r.ClearLive,
		OutputBytes: r.OutputBytes, ErrorBytes: r.ErrorBytes, Seconds: r.Seconds, CPUSeconds: r.CPUSeconds,
		MaxRSS: r.MaxRSS,
	}
}

func (d *Delivery) answer(ctx context.Context, err error) {
	if d.Err = err; d.Answered != nil {
		d.Answered(ctx)
	}
}

// An Unstorable error means that a report can never be stored as it is.
type Unstorable interface {
	error
	Unstorable()
}

// A Send sends reports in one call, or in several. If a call fails, it returns the error, and the outcomes of the
// reports that earlier calls sent.
type Send func(ctx context.Context, all []*Delivery) ([]redisstate.Outcome, error)

// Deliver sends reports in one call. If Redis refuses the call, Deliver sends them one by one, so that a refused report
// does not delay the others (docs/guarantees.md, "Every call may be sent twice"). It returns an error if Redis has
// refused a call, and when ctx ends.
func (send Send) Deliver(ctx context.Context, rest []*Delivery) (err error) {
	ctx = conn.UntilConfirmed(ctx) // the store of an API reports what is unconfirmed to its callers
	for most := len(rest); len(rest) > 0; {
		n := min(most, len(rest))
		outcomes, failed := send(ctx, rest[:n])
		for i, o := range outcomes {
			err = cmp.Or(send.take(ctx, rest[i], o.Err), err)
		}
		rest = rest[len(outcomes):]
		switch {
		case failed == nil:
		case ctx.Err() != nil:
			for _, d := range rest {
				d.answer(ctx, failed)
			}
			return failed
		case n > 1:
			most = 1
		default:
			err = cmp.Or(send.take(ctx, rest[0], failed), err)
			rest = rest[1:]
		}
	}
	return err
}

// take handles Redis's answer to a report. It returns an error if the report must be sent again.
func (send Send) take(ctx context.Context, d *Delivery, err error) error {
	for d.change(err) {
		var outcomes []redisstate.Outcome
		if outcomes, err = send(ctx, []*Delivery{d}); err == nil {
			err = outcomes[0].Err
		}
	}
	d.answer(ctx, err)
	if errors.As(err, new(*rules.StateError)) {
		return nil
	}
	return err
}

func movesOf(all []*Delivery) []rules.Move {
	moves := make([]rules.Move, len(all))
	for i, d := range all {
		moves[i] = d.move
	}
	return moves
}

// applying returns a Send that also opens the tasks of reports.
func applying(s common, who string) Send {
	return func(ctx context.Context, all []*Delivery) ([]redisstate.Outcome, error) {
		units := make([]redisstate.Unit, len(all))
		for i, d := range all {
			if len(d.open) > 0 {
				err := s.CheckNamed(ctx, d.open)
				if err != nil {
					return nil, err
				}
			}
			units[i] = redisstate.Unit{Moves: []rules.Move{d.move}, Open: d.open, ByRound: len(d.open) > 0}
		}
		return s.Apply(ctx, who, units...)
	}
}

// reporting returns a Send for reports with results only.
func reporting(s common, who string) Send {
	return func(ctx context.Context, all []*Delivery) ([]redisstate.Outcome, error) {
		return s.Execute(ctx, who, movesOf(all)...)
	}
}
