package server

import (
	"context"
	"maps"
	"slices"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

type settleStore interface {
	DueTasks(ctx context.Context, now task.Time, most int) ([]redisstate.Due, error)
	Read(ctx context.Context, ids []int64, want redisstate.Want) ([]redisstate.Stored, error)
	HandleEndings(ctx context.Context) (int, error)
}

// The server settles at most maxBatches batches of batchSize tasks before it audits.
const (
	batchSize  = 500
	maxBatches = 40
)

// Done is how many Moves a server's round made, by kind. A kind is a new state, or reopened, lost, removed,
// outputs_removed, returned, repaired, rescored or unblocked.
type Done map[string]int

// Total returns the number of all moves.
func (d Done) Total() int {
	n := 0
	for _, count := range d {
		n += count
	}
	return n
}

func (d Done) add(more Done) {
	for kind, n := range more {
		d.count(kind, n)
	}
}

func (d Done) count(kind string, n int) {
	if n > 0 {
		d[kind] += n
	}
}

// attrs returns the counts as attributes of a log message, in a fixed order.
func (d Done) attrs() []any {
	var attrs []any
	for _, kind := range slices.Sorted(maps.Keys(d)) {
		attrs = append(attrs, kind, d[kind])
	}
	return attrs
}

// settleDue links waiting tasks, settles due tasks, and handles the endings of tasks, also of those that workers have
// settled. It does so in batches, until there are none, or until it has settled maxBatches batches.
func (s *Server) settleDue(ctx context.Context) (Done, error) {
	done := Done{}
	for range maxBatches {
		now, grace, err := s.watch.look(ctx)
		if err != nil {
			return done, err
		}
		linked, err := s.link(ctx)
		if err != nil {
			return done, err
		}
		due, err := s.store.DueTasks(ctx, now, batchSize)
		if err != nil {
			return done, err
		}
		moves, err := s.decide(ctx, due, now, grace)
		if err != nil {
			return done, err
		}
		if err := s.apply(ctx, moves, done); err != nil {
			return done, err
		}
		ended, err := s.store.HandleEndings(ctx)
		if err != nil || len(due) < batchSize && !linked && ended == 0 {
			return done, err
		}
	}
	s.links.behind = true
	return done, nil
}

// decide returns a Move for each due task. If a renewal, for example, changes a task's due time before its Move is
// applied, the Move has no effect.
func (s *Server) decide(
	ctx context.Context, due []redisstate.Due, now task.Time, grace rules.Grace,
) ([]rules.Move, error) {
	if len(due) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(due))
	for i, d := range due {
		ids[i] = d.ID
	}
	stored, err := s.store.Read(ctx, ids, redisstate.Want{Fields: redisstate.Rules})
	if err != nil {
		return nil, err
	}
	moves := make([]rules.Move, len(stored))
	for i, t := range stored {
		moves[i] = s.decideOne(t, now, grace)
		moves[i].Due = due[i].Score
	}
	return moves, nil
}

// decideOne returns the Move for one due task.
func (s *Server) decideOne(t redisstate.Stored, now task.Time, grace rules.Grace) rules.Move {
	if t.Task == nil {
		m, _ := rules.Placement{ID: t.ID, Lists: rules.Lists}.Repair(now)
		return m
	}
	m, ok := rules.Settle(t.Task, now, t.Invalid)
	switch {
	case ok && now < grace.Holds(&m):
		return rules.Reschedule(t.Task, grace.Holds(&m))
	case ok:
		return m
	case t.Task.State == task.Executed || t.Task.MustLink():
		s.audit.suspect(t.ID) // the round may have no whole result; another program may have made the task wait
	case t.Task.State != task.Running && !t.Task.Waits() && t.Task.Current().Claim == "":
		s.audit.suspect(t.ID) // a component of the original TDF may have moved the task
	}
	return rules.Reschedule(t.Task, rules.NextDue(t.Task, now))
}

// apply applies the Moves, and counts in done the Moves that had an effect.
func (s *Server) apply(ctx context.Context, moves []rules.Move, done Done) error {
	units := make([]redisstate.Unit, len(moves))
	for i := range moves {
		units[i].Moves = moves[i : i+1]
	}
	outcomes, err := s.store.Apply(ctx, s.name, units...)
	for i, o := range outcomes {
		m := &moves[i]
		if o.Err != nil || m.Verb == rules.VerbReschedule {
			continue
		}
		done[kindOf(*m)]++
		if m.Repair && m.Verb != rules.VerbArchive {
			s.log.Warn("inconsistent task repaired", "task", m.ID, "how", m.Note)
		}
	}
	if err != nil {
		return err
	}
	return s.putOffRefused(ctx, moves, outcomes)
}

// kindOf returns the key of a Move in Done.
func kindOf(m rules.Move) string {
	switch {
	case m.Verb == rules.VerbArchive:
		return string(m.To)
	case m.Verb == rules.VerbRepair || m.Repair:
		return "repaired"
	case m.Verb == rules.VerbRescore:
		return "rescored"
	case m.Verb == rules.VerbUnblock:
		return "unblocked"
	case m.Verb == rules.VerbUnclaim:
		return "unclaimed"
	case m.To == task.Open:
		return "reopened"
	case m.Verb == rules.VerbLose:
		return "lost"
	case m.Verb == rules.VerbRemove:
		return "removed"
	case m.Verb == rules.VerbRemoveOutputs:
		return "outputs_removed"
	}
	return string(m.To)
}
