package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// Open opens tasks if the round succeeds (docs/lifecycle.md, "Tasks that open tasks"). Redis opens them in the same step in which it
// accepts the round's result. A definition that sets no program, queue, limit and so on has those of this task.
//
// An invalid definition makes the round fail. The error is [Permanent] if the round opens more than [tdf.MaxFollowing] tasks.
func (r *Round) Open(definitions ...tdf.Definition) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.opened)+len(definitions) > tdf.MaxFollowing {
		return Permanent(errTooMany)
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

var errTooMany = fmt.Errorf("more than %d tasks are too many for one round: let some of them open the others", tdf.MaxFollowing)

// A following is a task that a round opens.
type following struct {
	tdf.Definition
	from string // where the round has defined it, for errors
}

// followingOf returns the tasks that a round wants to open: those of its handler, and those of its file open.jsonl.
func followingOf(r *Round, openFile string) ([]following, error) {
	var all []following
	for i, d := range r.Opened() {
		all = append(all, following{d, fmt.Sprintf("task %d that the handler opens", i+1)})
	}
	number := 0
	for line := range strings.Lines(openFile) {
		number++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		f := following{from: fmt.Sprintf("open.jsonl, line %d", number)}
		if err := json.Unmarshal([]byte(line), &f.Definition); err != nil {
			return nil, fmt.Errorf("%s: %w", f.from, err)
		}
		if all = append(all, f); len(all) > tdf.MaxFollowing {
			return nil, fmt.Errorf("%s: %w", f.from, errTooMany)
		}
	}
	return all, nil
}

// propertiesOf returns the properties of the tasks that a round of t opens.
func propertiesOf(t *tdf.Task, all []following) ([]tdf.Properties, error) {
	open := make([]tdf.Properties, len(all))
	for i := range all {
		var err error
		if open[i], err = t.Follow(&all[i].Definition); err != nil {
			return nil, fmt.Errorf("%s: %w", all[i].from, err)
		}
	}
	_, err := tdf.InOrder(open)
	return open, err
}

// complete reads the tasks whose rounds open tasks, and completes the definitions with their properties. A claim does not read
// them, because few rounds open tasks. If a definition is invalid, the round fails. If the tasks cannot be read, complete returns the
// reports as refused, because a result must not be stored without its tasks.
func (s *session) complete(ctx context.Context, opening []delivery) (ready, refused []delivery, err error) {
	if len(opening) == 0 {
		return nil, nil, nil
	}
	ids := make([]int64, len(opening))
	for i, d := range opening {
		ids[i] = d.e.task.ID
	}
	stored, err := s.store.Read(ctx, ids, redisstate.Want{Fields: redisstate.Facts})
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
		if d.open, err = propertiesOf(t, d.e.following); err != nil {
			d = d.e.notOpened(err)
		}
		ready = append(ready, d)
	}
	return ready, nil, nil
}

// notOpened returns a report of a round that fails, because its tasks cannot be opened.
func (e *execution) notOpened(err error) delivery {
	r := e.result
	e.reason = fmt.Sprintf("its new tasks could not be opened: %v (%s ended with %s)", err, r.Subject(), r.Exit)
	r.Refused, r.Reason = true, e.reason
	return e.executed(r)
}

// A notOpenedError says why Redis refuses to open the tasks of a round.
type notOpenedError struct{ error }

// refusal returns Redis's answer to a report. If the answer concerns the tasks that the report opens, it is a *notOpenedError.
func (d *delivery) refusal(answer error) error {
	if answer == nil || !d.opens || errors.As(answer, new(*tdf.StateError)) {
		return answer
	}
	return &notOpenedError{answer}
}
