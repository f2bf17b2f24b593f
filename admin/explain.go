package admin

import (
	"context"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/redisstate"
)

// A Gate is one thing on a task's way.
type Gate struct {
	Name  string
	State GateState
	What  string // is so, in words
	Cure  string // what would change that; "" where nothing has to be done
}

// A GateState says where a task stands before a gate.
type GateState string

// The states of gates.
const (
	Passed GateState = "passed"
	Holds  GateState = "holds" // it keeps the task from going on
	Ahead  GateState = "ahead" // not reached yet
)

// An Explanation says where a task stands, and what it has to pass until it is done.
type Explanation struct {
	ID      int64
	State   tdf.State
	Outcome string
	Round   int
	Gates   []Gate
}

// Held says whether a gate holds the task.
func (e *Explanation) Held() bool {
	return slices.ContainsFunc(e.Gates, func(g Gate) bool { return g.State == Holds })
}

// Explain says what a task waits for. An http source is asked for from here, for up to 5 s. The error is
// [tdf.ErrNoTask] where there is no such task.
func (a *Admin) Explain(ctx context.Context, id int64) (Explanation, error) {
	c, err := a.situation(ctx, id)
	if err != nil {
		return Explanation{}, err
	}
	t := c.task
	e := Explanation{ID: id, State: t.State, Outcome: t.Outcome, Round: t.Round}
	switch {
	case t.State == tdf.Open:
		e.Gates = c.open()
	case t.State == tdf.Running:
		e.Gates = c.running()
	case t.State == tdf.Executed:
		e.Gates = c.executed()
	default:
		e.Gates = c.finished()
	}
	return e, nil
}

// A situation is all that the gates of a task depend on.
type situation struct {
	task    *tdf.Task
	invalid error
	now     tdf.Time
	server  tdf.Time // was seen last; 0: never
	grace   redisstate.Grace
	full    bool // Redis has reached its maxmemory
	place   redisstate.QueuePosition
	source  Gate
	workers []redisstate.WorkerStatus
	took    []tdf.Seconds // rounds of its program that succeeded, from short to long
}

func (a *Admin) situation(ctx context.Context, id int64) (*situation, error) {
	s, err := a.redis(ctx)
	if err != nil {
		return nil, err
	}
	c := &situation{}
	stored, err := s.ReadOne(ctx, id, redisstate.Want{
		Fields: redisstate.Rules | redisstate.Facts, Rounds: redisstate.LastRounds(listing.SummaryRounds), Texts: errorOfEnd,
	})
	if err != nil {
		return nil, err
	}
	c.task, c.invalid = stored.Task, stored.Invalid
	for _, ask := range []func() error{
		func() (err error) { c.now, err = s.Now(ctx); return err },
		func() (err error) { c.server, err = s.LastServerHeartbeat(ctx); return err },
		func() (err error) { c.grace, err = s.Grace(ctx); return err },
		func() (err error) { c.full, err = s.Full(ctx); return err },
		func() (err error) { c.place, err = s.QueuePosition(ctx, id); return err },
		func() (err error) { c.workers, err = s.Workers(ctx); return err },
		func() (err error) { c.source, err = c.sourceGate(ctx, s); return err },
		func() (err error) { c.took, err = took(ctx, s, c.task); return err },
	} {
		if err := ask(); err != nil {
			return nil, fmt.Errorf("explaining task %d: %w", id, err)
		}
	}
	return c, nil
}

// errorOfEnd returns the error text of the round in which a task finished.
func errorOfEnd(t *tdf.Task) []redisstate.TextsOf {
	if f := listing.LastFailure(t); !t.State.Finished() || f == nil || f.Round != t.Round {
		return nil
	}
	return []redisstate.TextsOf{{Round: t.Round, Texts: tdf.TextError}}
}

// mostTook is how many rounds are compared with.
const mostTook = 200

// took returns how long rounds of a running task's program took that succeeded, of those that ended last.
func took(ctx context.Context, s store, t *tdf.Task) ([]tdf.Seconds, error) {
	if t.State != tdf.Running {
		return nil, nil
	}
	page, err := listing.Find(ctx, s, listing.Query{Outcomes: []string{string(tdf.Succeeded)}, Program: listing.Literal(t.Program)}, "", mostTook)
	var took []tdf.Seconds
	for _, other := range page.Tasks {
		if seconds := other.Current().Seconds; seconds > 0 {
			took = append(took, seconds)
		}
	}
	slices.Sort(took)
	return took, err
}
