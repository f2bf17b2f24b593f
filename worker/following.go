package worker

import (
	"cmp"
	"context"
	"errors"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/broker"
	"github.com/tdf-framework/tdf/redisstate"
)

// Open opens tasks if the round succeeds (docs/lifecycle.md, "Tasks that open tasks"). Redis opens them in the same
// step in which it accepts the round's result. A definition that sets no program, queue, limit and so on has those of
// this task.
//
// An invalid definition makes the round fail. The error is [Permanent] if the round opens more than [tdf.MaxFollowing]
// tasks.
func (r *Round) Open(definitions ...tdf.Definition) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.opened)+len(definitions) > tdf.MaxFollowing {
		return Permanent(broker.ErrTooMany)
	}
	r.opened = append(r.opened, definitions...)
	return nil
}

// Opened returns the definitions that Open has got so far.
func (r *Round) Opened() []tdf.Definition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]tdf.Definition(nil), r.opened...)
}

// followingOf returns the tasks that a round wants to open: those of its handler, and those of its file open.jsonl.
func followingOf(r *Round, openFile string) ([]broker.Following, error) {
	return broker.ParseLines(broker.Numbered("task %d that the handler opens", r.Opened()), openFile)
}

// complete reads the tasks whose rounds open tasks, and completes the definitions with their properties. A claim does
// not read them, because few rounds open tasks. If a definition is invalid, the round fails. If the tasks cannot be
// read, complete returns the reports as refused, because a result must not be stored without its tasks.
func (s *session) complete(ctx context.Context, opening []delivery) (ready, refused []delivery, err error) {
	if len(opening) == 0 {
		return nil, nil, nil
	}
	ids := make([]int64, len(opening))
	for i, d := range opening {
		ids[i] = d.e.task.ID
	}
	closed := s.store.RoundsOpen(ctx)
	if closed == redisstate.ErrRoundsOpenNothing {
		for _, d := range opening {
			ready = append(ready, d.e.notOpened(closed))
		}
		return ready, nil, nil
	}
	stored, err := s.store.Read(ctx, ids, redisstate.Want{Fields: redisstate.Facts})
	err = cmp.Or(closed, err)
	if err != nil && ctx.Err() != nil {
		s.giveUp(opening, err)
		return nil, nil, nil
	}
	if err != nil {
		return nil, opening, err
	}
	for i, d := range opening {
		t := stored[i].Task
		if t == nil || t.State != tdf.Running || t.Round != d.e.task.Round {
			s.drop(d, &tdf.StateError{ID: ids[i], Verb: tdf.VerbExecute})
			continue
		}
		if d.open, err = broker.Properties(t, d.e.following); err != nil {
			d = d.e.notOpened(err)
		}
		ready = append(ready, d)
	}
	return ready, nil, nil
}

// notOpened returns a report of a round that fails, because its tasks cannot be opened.
func (e *execution) notOpened(err error) delivery {
	end := broker.Ending{Claim: e.claim, Result: e.result}
	end.NotOpened(err)
	e.reason = end.Result.Reason
	return e.report(end)
}

// A notOpenedError says why Redis refuses to open the tasks of a round.
type notOpenedError struct{ error }

// refusal returns Redis's answer to a report. If the answer concerns the tasks that the report opens, it is a
// *notOpenedError.
func (d *delivery) refusal(answer error) error {
	if answer == nil || !d.opens || errors.As(answer, new(*tdf.StateError)) {
		return answer
	}
	return &notOpenedError{answer}
}
