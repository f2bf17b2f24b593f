package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// An Act is something that is done to tasks by hand (docs/lifecycle.md, "By hand").
type Act struct {
	// Verb is one of reopen (finished tasks, archived ones too: each gets one more round and keeps its
	// counters), change (open tasks), release (running ones are taken from their workers), cancel (open
	// and running ones; their outcome is cancelled), archive (those that wait for a manager), and remove
	// (finished ones).
	Verb tdf.Verb

	From []tdf.State // only where a task is in one of these; none: wherever the verb can be done

	Changes   tdf.Changes // to reopen with, or to change to
	Elsewhere bool        // release: the workers that have the tasks do not get them again
}

// A Found is a task as it was found that is meant: if it is in another round by then, something has become
// of it meanwhile, and it is left as it is.
type Found struct {
	ID    int64
	Round int // AnyRound: whichever
}

// AnyRound is for tasks that are meant whatever has become of them.
const AnyRound = -1

// Acted is what became of it.
type Acted struct {
	Done int
	// Refused has an error for each task that was left as it is: mostly a *[tdf.StateError] that says
	// where it was found, or a *[tdf.PropertyError], [tdf.ErrUnchanged] or [ErrPast] about changes.
	Refused []error
}

// ErrPast says that a task was not opened again because it would expire at once: its end_before is past, by
// Redis's clock. With a later one among the changes it is.
var ErrPast = errors.New("its end_before is past, and it would expire at once")

// Reopen opens finished tasks again, archived ones too. Each task is reopened or not by itself: the
// error joins one for each that was not, such as [ErrPast].
func (m *Manager) Reopen(ctx context.Context, ids ...int64) error {
	return m.actJoined(ctx, Act{Verb: tdf.VerbReopen}, ids)
}

// Cancel gives up tasks that are open or running: they become expired, with the outcome
// cancelled; a program that runs is ended by its worker. Errors are those of Reopen.
func (m *Manager) Cancel(ctx context.Context, ids ...int64) error {
	return m.actJoined(ctx, Act{Verb: tdf.VerbCancel}, ids)
}

// CancelOpen gives up the tasks of a group that are open at this moment; "" is for all tasks. Those that run are left
// alone, also where they only just began. It returns how many were given up.
func (m *Manager) CancelOpen(ctx context.Context, group string) (int, error) {
	states := []tdf.State{tdf.Open}
	var found []Found
	for t, err := range m.All(ctx, Query{Group: group, States: states}) {
		if err != nil {
			return 0, fmt.Errorf("cancelling open tasks: %w", err)
		}
		found = append(found, Found{t.ID, AnyRound})
	}
	acted, err := m.Act(ctx, Act{Verb: tdf.VerbCancel, From: states}, found...)
	return acted.Done, err
}

func (m *Manager) actJoined(ctx context.Context, act Act, ids []int64) error {
	found := make([]Found, len(ids))
	for i, id := range ids {
		found[i] = Found{id, AnyRound}
	}
	acted, err := m.Act(ctx, act, found...)
	return errors.Join(append(acted.Refused, err)...)
}

const (
	handBatch = 500
	handTries = 5 // a task that moves meanwhile may still be where the verb applies
)

// Act does something to tasks by hand, to each by itself, and notes in its log who did. An error
// means that some of them were not reached; what became of the others is told all the same.
func (m *Manager) Act(ctx context.Context, act Act, found ...Found) (Acted, error) {
	decide, err := act.decider()
	if err != nil {
		return Acted{}, err
	}
	h := hand{act: act, decide: decide, rounds: make(map[int64]int, len(found))}
	var ids []int64
	for _, f := range found {
		if _, twice := h.rounds[f.ID]; !twice {
			ids = append(ids, f.ID)
		}
		h.rounds[f.ID] = f.Round
	}
	for page := range slices.Chunk(ids, handBatch) {
		if err := h.do(ctx, m, page); err != nil {
			return h.acted, fmt.Errorf("%s tasks: %w", act.Verb, err)
		}
	}
	return h.acted, nil
}

// A hand does one act.
type hand struct {
	act    Act
	decide func(*tdf.Task) (tdf.Move, error)
	rounds map[int64]int // in which the tasks were found
	now    tdf.Time
	acted  Acted
}

// decider returns what decides over one task.
func (a Act) decider() (func(*tdf.Task) (tdf.Move, error), error) {
	switch a.Verb {
	case tdf.VerbReopen:
		if a.Changes == (tdf.Changes{}) {
			return (*tdf.Task).Reopen, nil
		}
		return func(t *tdf.Task) (tdf.Move, error) { return t.ReopenWith(a.Changes) }, nil
	case tdf.VerbChange:
		return func(t *tdf.Task) (tdf.Move, error) { return t.Change(a.Changes) }, nil
	case tdf.VerbRelease:
		return func(t *tdf.Task) (tdf.Move, error) { return t.Requeue(a.Elsewhere) }, nil
	case tdf.VerbCancel:
		return (*tdf.Task).Cancel, nil
	case tdf.VerbArchive:
		return (*tdf.Task).Archive, nil
	case tdf.VerbRemove:
		return (*tdf.Task).Remove, nil
	}
	return nil, fmt.Errorf("%q is nothing that is done to tasks by hand", a.Verb)
}

func (h *hand) do(ctx context.Context, m *Manager, ids []int64) error {
	for try := 1; len(ids) > 0; try++ {
		seen, err := m.store.Read(ctx, ids, redisstate.Want{Fields: redisstate.Rules})
		if err != nil {
			return err
		}
		if h.now, err = m.store.Now(ctx); err != nil {
			return err
		}
		var units []redisstate.Unit
		for _, s := range seen {
			move, err := h.move(s)
			if err != nil {
				h.acted.Refused = append(h.acted.Refused, err)
				continue
			}
			units = append(units, redisstate.Unit{Moves: []tdf.Move{move}})
		}
		outcomes, err := m.store.Apply(ctx, m.name, units...)
		ids = nil
		for i, o := range outcomes {
			switch {
			case o.Err == nil:
				h.acted.Done++
			case try < handTries:
				ids = append(ids, units[i].Moves[0].ID)
			default:
				h.acted.Refused = append(h.acted.Refused, o.Err)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *hand) move(s redisstate.Stored) (tdf.Move, error) {
	t := s.Task
	if t == nil {
		return tdf.Move{}, &tdf.StateError{ID: s.ID, Verb: h.act.Verb, State: tdf.None}
	}
	round := h.rounds[s.ID]
	if round != AnyRound && round != t.Round || len(h.act.From) > 0 && !slices.Contains(h.act.From, t.State) {
		return tdf.Move{}, &tdf.StateError{ID: s.ID, Verb: h.act.Verb, State: t.State, Round: t.Round}
	}
	move, err := h.decide(t)
	if err == nil && h.act.Verb == tdf.VerbReopen && h.act.Changes.Apply(t.Properties).EndBefore <= h.now {
		err = ErrPast
	}
	var elsewhere *tdf.StateError
	if err != nil && !errors.As(err, &elsewhere) {
		err = fmt.Errorf("%s task %d: %w", h.act.Verb, s.ID, err)
	}
	return move, err
}
