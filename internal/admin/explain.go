package admin

import (
	"context"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/jsonview"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/callbacks"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
	"github.com/tdf-framework/tdf/redisstate/opensets"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A Check is one condition that a task must meet so that it can finish.
type Check struct {
	Name  string     `json:"name"`
	State CheckState `json:"state"`
	Fact
}

func passed(name, text string) Check { return Check{name, Passed, Fact{Text: text}} }

func ahead(name, text string) Check { return Check{name, Ahead, Fact{Text: text}} }

func blocked(name string, f Fact) Check { return Check{name, Blocked, f} }

// blockedBy returns a check that blocks the task for a reason that concerns only this task.
func blockedBy(name string, code FactCode, text string, fix Fix) Check {
	return blocked(name, Fact{Code: code, Text: text, Fix: fix})
}

// A CheckState is the result of a check.
type CheckState string

// The states of checks.
const (
	Passed  CheckState = "passed"
	Blocked CheckState = "blocked" // the task cannot continue before the condition changes
	Ahead   CheckState = "ahead"   // the condition matters later
)

// An Explanation lists the checks of a task, in the order in which they matter.
type Explanation struct {
	ID      int64      `json:"id"`
	State   task.State `json:"state"`
	Outcome string     `json:"outcome,omitempty"`
	Round   int        `json:"round"`
	Checks  []Check    `json:"checks"`
}

// Blocked reports whether a check blocks the task.
func (e *Explanation) Blocked() bool {
	return slices.ContainsFunc(e.Checks, func(c Check) bool { return c.State == Blocked })
}

// MarshalJSON adds the field "blocked" to the fields of the Explanation.
func (e Explanation) MarshalJSON() ([]byte, error) {
	o := jsonview.Of(e)
	o.Delete("checks")
	o.Set("blocked", e.Blocked())
	o.Set("checks", e.Checks)
	return o.MarshalJSON()
}

// Explain returns the checks that decide whether and when a task continues. If the task has an http source, Explain
// asks the web server for up to 5 s whether the program exists. The error wraps [task.ErrNoTask] if the task does not
// exist.
func (a *Admin) Explain(ctx context.Context, id int64) (Explanation, error) {
	c, err := a.situation(ctx, id)
	if err != nil {
		return Explanation{}, err
	}
	if c.source, err = c.sourceCheck(ctx, a.redis()); err != nil {
		return Explanation{}, fmt.Errorf("explain task %d: %w", id, err)
	}
	t := c.task
	return Explanation{ID: id, State: t.State, Outcome: t.Outcome, Round: t.Round, Checks: c.checks()}, nil
}

func (c *situation) checks() []Check {
	switch c.task.State {
	case task.Open:
		return c.open()
	case task.Running:
		return c.running()
	case task.Executed:
		return c.executed()
	}
	return c.finished()
}

// A situation holds the facts on which the checks of a task depend.
type situation struct {
	snapshot
	task     *task.Task
	wrong    error // the reason why the task's definition is invalid
	grace    rules.Grace
	place    opensets.Position
	pending  []dependencies.Dependency // the first dependencies that have not ended
	limit    task.LimitUse             // of the task's limit key
	kept     []redisstate.Keeping      // the blocked tasks for which workers keep resources back
	source   Check                     // not read by situation
	callback callbacks.Failure         // of the task's callback
	took     []task.Seconds            // run times of successful rounds of the program, in ascending order
}

func (a *Admin) situation(ctx context.Context, id int64) (*situation, error) {
	s := a.redis()
	c := &situation{}
	stored, err := s.ReadOne(ctx, id, redisstate.Want{
		Fields: redisstate.Rules | redisstate.Facts, Rounds: redisstate.LastRounds(listing.SummaryRounds),
		Texts: errorOfEnd,
	})
	if err != nil {
		return nil, err
	}
	c.task, c.wrong = stored.Task, stored.Invalid
	if err := c.read(ctx, s); err != nil {
		return nil, fmt.Errorf("explain task %d: %w", id, err)
	}
	return c, nil
}

// read reads what decides about the task.
func (c *situation) read(ctx context.Context, s *redisstate.Store) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	err = readings(
		func() (err error) { c.fleet, err = readFleet(ctx, storeOf(s), now, 0); return err },
		func() (err error) { c.grace, err = s.Presence.Grace(ctx); return err },
		func() error { return c.readRoom(ctx, storeOf(s)) },
		func() (err error) { c.place, err = s.OpenSets.PositionOf(ctx, c.task); return err },
		func() (err error) { c.paused, err = s.Limits.Paused(ctx); return err },
		func() (err error) { c.pending, err = pendingOf(ctx, s, c.task); return err },
		func() (err error) { c.limit, err = limitOf(ctx, s, c.task); return err },
		func() (err error) { c.took, err = runTimes(ctx, storeOf(s), c.task); return err },
		func() (err error) { c.callback, err = callbackOf(ctx, s, c.task.ID); return err },
	)
	if err != nil || c.task.State != task.Open {
		return err
	}
	if c.kept, err = s.Kept(ctx, c.withResources()); err != nil || !c.place.Listed || c.task.IsHeld() {
		return err
	}
	return c.countBesides(ctx, s)
}

// withResources returns the names of the live workers that offer resources.
func (f *fleet) withResources() (names []string) {
	for i := range f.workers {
		if w := &f.workers[i]; w.Alive(f.at) && w.Offer.Resources != nil {
			names = append(names, w.Name)
		}
	}
	return names
}

// countBesides counts the due tasks with other requirements of the queue that go before the task: those that a live
// worker which may claim the task may claim, too.
func (c *situation) countBesides(ctx context.Context, s *redisstate.Store) error {
	names, err := s.Counters.Waiting(ctx)
	workers, own := c.matching(), c.task.Requirement()
	names = slices.DeleteFunc(names, func(name string) bool {
		p, _ := class.ParseRequirement(name)
		return name == c.task.OpenSet() || p.Queue != own.Queue ||
			!slices.ContainsFunc(workers.workers, func(w presence.WorkerStatus) bool {
				p.Group = w.Offer.Group
				return w.Claims(c.at) && class.Serves(&w.Offer, p)
			})
	})
	if err == nil {
		err = s.OpenSets.AheadIn(ctx, &c.place, c.task, names)
	}
	return err
}

// limitOf returns how the limit of an open task's key is used.
func limitOf(ctx context.Context, s *redisstate.Store, t *task.Task) (task.LimitUse, error) {
	if t.State != task.Open || t.LimitKey == "" {
		return task.LimitUse{}, nil
	}
	uses, err := s.Limits.LimitUses(ctx, t.LimitKey)
	if err != nil {
		return task.LimitUse{}, err
	}
	return uses[0], nil
}

func callbackOf(ctx context.Context, s *redisstate.Store, id int64) (callbacks.Failure, error) {
	failures, err := s.Callbacks.Failures(ctx, id)
	if err != nil {
		return callbacks.Failure{}, err
	}
	return failures[0], nil
}

// errorOfEnd selects the stderr of the round in which a task failed, so that Explain reads this text.
func errorOfEnd(t *task.Task) []redisstate.TextsOf {
	if f := listing.LastFailure(t); !t.State.Finished() || f == nil || f.Round != t.Round {
		return nil
	}
	return []redisstate.TextsOf{{Round: t.Round, Texts: task.TextError}}
}

// mostTook is the maximum number of rounds whose run times are read for comparison.
const mostTook = 200

// runTimes returns the run times of the last successful rounds of the task's program. It returns none if the task does
// not run.
func runTimes(ctx context.Context, s store, t *task.Task) ([]task.Seconds, error) {
	if t.State != task.Running {
		return nil, nil
	}
	page, err := listing.Find(ctx, s, task.Query{
		Outcomes: []string{string(task.Succeeded)},
		Program:  listing.Literal(t.Program),
	}, "", mostTook)
	var took []task.Seconds
	for _, other := range page.Tasks {
		if seconds := other.Current().Seconds; seconds > 0 {
			took = append(took, seconds)
		}
	}
	slices.Sort(took)
	return took, err
}
