package broker

import (
	"context"
	"errors"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// answerAgain answers reports whose claims do not hold: the tasks are lost, or an earlier copy of the report was
// accepted.
func (b *Broker) answerAgain(ctx context.Context, over []*reportDelivery) error {
	byRound := map[int][]*reportDelivery{}
	for _, x := range over {
		byRound[x.Round] = append(byRound[x.Round], x)
	}
	for round, all := range byRound {
		ids := make([]int64, len(all))
		for i, x := range all {
			ids[i] = x.ID
		}
		stored, err := b.store.Read(ctx, ids, redisstate.Want{
			Fields: redisstate.Facts, Rounds: redisstate.OneRound(round),
		})
		if err != nil {
			return err
		}
		for i, x := range all {
			x.answerFrom(stored[i].Task)
		}
	}
	return nil
}

// answerFrom answers a report whose claim does not hold, from the round of the claim. It accepts the copy of a report
// that was accepted, and refuses one that says something else.
func (x *reportDelivery) answerFrom(t *task.Task) {
	if t == nil || t.Rounds.At(x.Round).Claim != x.Run.Claim { // of another worker's task, the answer says nothing
		x.refuse(&rules.StateError{ID: x.ID, Verb: rules.VerbExecute})
		return
	}
	r := t.Rounds.At(x.Round)
	executed := r.Entered[task.Executed] > 0 && x.Agrees(r)
	released := t.Round > x.Round && r.Entered[task.Executed] == 0 && r.TimedOutAt == 0 && r.LostAt == 0
	gives := x.Action == "release" || x.Action == "time_out" || x.Later != nil || x.Unfit
	timedOut := x.Action == "time_out" && r.TimedOutAt > 0
	if !timedOut && !executed && !(released && gives) {
		x.refuse(&rules.StateError{ID: x.ID, Verb: rules.VerbExecute, State: t.State, Round: t.Round})
		return
	}
	x.answer.Accepted = true
	if executed && r.Exit == "" && !timedOut {
		x.answer.Detail = "the round counts as failed; its error says why"
	}
}

// Agrees reports whether an executed round may have ended as the report says. If the report was refused, for example
// because of its result, the round has no exit status (docs/lifecycle.md, "What makes a round fail"), and agrees with
// every report.
func (r *Report) Agrees(executed *task.Round) bool {
	return executed.Exit == "" || executed.Exit == r.exit()
}

func (x *reportDelivery) refuse(err error) {
	x.answer.Accepted, x.answer.Code, x.answer.Detail = false, string(task.CodeOf(err)), err.Error()
}

func (x *reportDelivery) accept() {
	x.answer.Accepted = true
	if x.move.HasResult() && x.Delivery.Result.Refused {
		x.answer.Detail = Short(x.Delivery.Result.Reason)
	}
}

// errFull is the error of a report for whose new tasks Redis has no memory. Its code lets workers repeat the report.
var errFull = task.NewError(task.CodeUnavailable,
	"redis is full (maxmemory is reached); the same call may succeed later")

// deliverTo sends reports, and answers them. It returns those whose tasks do not run with the claim any more: perhaps
// another copy of the report was faster.
func deliverTo(ctx context.Context, send Send, all []*reportDelivery) (late []*reportDelivery, err error) {
	reports := make([]*Delivery, len(all))
	for i, x := range all {
		reports[i] = &x.Delivery
	}
	err = send.Deliver(ctx, reports)
	if errors.Is(err, conn.ErrFull) {
		err = errFull
	}
	if err != nil {
		return nil, err
	}
	for _, x := range all {
		if x.Err == nil {
			x.accept()
		} else {
			late = append(late, x)
		}
	}
	return late, nil
}
