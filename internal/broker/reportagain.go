package broker

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// answerAgain answers reports whose claims do not hold: the tasks are lost, or an earlier copy of the report was
// accepted.
func (b *Broker) answerAgain(ctx context.Context, over []*reportDelivery) error {
	byRound := map[int][]*reportDelivery{}
	var refused []*reportDelivery
	for _, x := range over {
		switch {
		case x.Task == nil:
			x.refuse(&rules.StateError{ID: x.ID, Verb: rules.VerbExecute})
		case x.Task.Round == x.Round:
			refused = x.answerFrom(x.Task, refused)
		default:
			byRound[x.Round] = append(byRound[x.Round], x)
		}
	}
	for round, all := range byRound {
		stored, err := b.read(ctx, all, redisstate.Want{Fields: redisstate.Facts, Rounds: redisstate.OneRound(round)})
		if err != nil {
			return err
		}
		for i, x := range all {
			if x.refuse(&rules.StateError{ID: x.ID, Verb: rules.VerbExecute}); stored[i].Task != nil {
				refused = x.answerFrom(stored[i].Task, refused)
			}
		}
	}
	return b.explain(ctx, refused)
}

// answerFrom answers a report whose claim does not hold, from the round of the claim. It accepts the copy of a report
// that was accepted, and refuses one that says something else. If the round was refused, it adds the report to the
// list.
func (x *reportDelivery) answerFrom(t *task.Task, refused []*reportDelivery) []*reportDelivery {
	r := t.Rounds.At(x.Round)
	executed := r.Entered[task.Executed] > 0 && x.Agrees(r)
	released := t.Round > x.Round && r.Entered[task.Executed] == 0 && r.TimedOutAt == 0 && r.LostAt == 0
	gives := x.Action == "release" || x.Action == "time_out" || x.Later != nil || x.Unfit
	switch {
	case r.Claim != x.Run.Claim: // another worker's task, of which the answer says nothing
		x.refuse(&rules.StateError{ID: x.ID, Verb: rules.VerbExecute})
		return refused
	case x.Action == "time_out" && r.TimedOutAt > 0:
	case !executed && !(released && gives):
		x.refuse(&rules.StateError{ID: x.ID, Verb: rules.VerbExecute, State: t.State, Round: t.Round})
		return refused
	case executed && r.Exit == "":
		refused = append(refused, x)
	}
	x.answer.Accepted, x.answer.Code, x.answer.Detail = true, "", ""
	return refused
}

// Agrees reports whether an executed round may have ended as the report says. If the report was refused, for example
// because of its result, the round has no exit status (docs/lifecycle.md, "What makes a round fail"), and agrees with
// every report.
func (r *Report) Agrees(executed *task.Round) bool {
	return executed.Exit == "" || executed.Exit == r.exit()
}

// explain answers copies of reports that were refused: their rounds count as failed. It says why, as the first answer
// did, with the last line of the round's error.
func (b *Broker) explain(ctx context.Context, refused []*reportDelivery) error {
	rounds := map[int64]int{}
	for _, x := range refused {
		rounds[x.ID] = x.Round
	}
	errorOf := func(t *task.Task) []redisstate.TextsOf {
		return []redisstate.TextsOf{{Round: rounds[t.ID], Texts: task.TextError}}
	}
	for len(refused) > 0 {
		stored, err := b.read(ctx, refused, redisstate.Want{Texts: errorOf, MaxBytes: mostExplained})
		if err != nil {
			return err
		}
		for i, s := range stored {
			x := refused[i]
			x.answer.Detail = "the round counts as failed"
			if s.Task != nil {
				text := strings.TrimRight(s.Task.Rounds.At(x.Round).Error, "\n")
				x.answer.Detail = cmp.Or(Short(text[strings.LastIndexByte(text, '\n')+1:]), x.answer.Detail)
			}
		}
		refused = refused[len(stored):]
	}
	return nil
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

// readAgain reads the present facts of tasks, and answers their reports, whose claims do not hold.
func (b *Broker) readAgain(ctx context.Context, over []*reportDelivery) error {
	if len(over) == 0 {
		return nil
	}
	stored, err := b.read(ctx, over, redisstate.Want{Fields: redisstate.Facts, Rounds: redisstate.LastRounds(1)})
	if err != nil {
		return err
	}
	for i, x := range over {
		x.Task = stored[i].Task
	}
	return b.answerAgain(ctx, over)
}

// read reads the tasks of reports.
func (b *Broker) read(ctx context.Context, all []*reportDelivery, want redisstate.Want) ([]redisstate.Stored, error) {
	ids := make([]int64, len(all))
	for i, x := range all {
		ids[i] = x.ID
	}
	return b.store.Read(ctx, ids, want)
}
