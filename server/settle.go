package server

import (
	"context"
	"maps"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

type settler interface {
	Due(ctx context.Context, now tdf.Time, most int64) ([]redisstate.Due, error)
	Read(ctx context.Context, ids []int64, want redisstate.Want) ([]redisstate.Stored, error)
}

// Bounds of what is settled before a server does anything else.
const (
	batchSize  = 500
	maxBatches = 40
)

// Done counts what a round did, by verb and state.
type Done map[string]int

// Total adds up all that was done.
func (d Done) Total() int {
	n := 0
	for _, count := range d {
		n += count
	}
	return n
}

func (d Done) add(more Done) {
	for what, n := range more {
		d[what] += n
	}
}

// attrs are for the log: what was done, in a fixed order.
func (d Done) attrs() []any {
	var attrs []any
	for _, what := range slices.Sorted(maps.Keys(d)) {
		attrs = append(attrs, what, d[what])
	}
	return attrs
}

// settleDue settles what is due, in batches, until nothing is.
func (s *Server) settleDue(ctx context.Context) (Done, error) {
	done := Done{}
	for range maxBatches {
		now, grace, err := s.watch.look(ctx)
		if err != nil {
			return done, err
		}
		due, err := s.store.Due(ctx, now, batchSize)
		if err != nil || len(due) == 0 {
			return done, err
		}
		moves, err := s.decide(ctx, due, now, grace)
		if err != nil {
			return done, err
		}
		if err := s.carryOut(ctx, moves, done); err != nil || len(due) < batchSize {
			return done, err
		}
	}
	return done, nil
}

// decide asks the rules about each task that is due. Every decision is void if a renewal, or
// anybody else, moves the task's due time meanwhile.
func (s *Server) decide(ctx context.Context, due []redisstate.Due, now tdf.Time, grace redisstate.Grace) ([]tdf.Move, error) {
	ids := make([]int64, len(due))
	for i, d := range due {
		ids[i] = d.ID
	}
	stored, err := s.store.Read(ctx, ids, redisstate.Want{Fields: redisstate.Rules})
	if err != nil {
		return nil, err
	}
	moves := make([]tdf.Move, len(stored))
	for i, t := range stored {
		moves[i] = s.decideOne(t, now, grace)
		moves[i].Due = due[i].Score
	}
	return moves, nil
}

func (s *Server) decideOne(t redisstate.Stored, now tdf.Time, grace redisstate.Grace) tdf.Move {
	if t.Task == nil {
		m, _ := tdf.Placement{ID: t.ID, Lists: tdf.Lists}.Repair(now)
		return m
	}
	m, ok := t.Task.Settle(now, t.Invalid)
	switch {
	case ok && now < grace.Holds(&m):
		return t.Task.Reschedule(grace.Holds(&m))
	case ok:
		return m
	case t.Task.State == tdf.Executed:
		s.audit.suspect(t.ID)
	}
	return t.Task.Reschedule(t.Task.NextDue(now))
}

// carryOut makes the moves and counts those that were still due.
func (s *Server) carryOut(ctx context.Context, moves []tdf.Move, done Done) error {
	units := make([]redisstate.Unit, len(moves))
	for i := range moves {
		units[i].Moves = moves[i : i+1]
	}
	outcomes, err := s.store.Apply(ctx, s.name, units...)
	for i, o := range outcomes {
		m := &moves[i]
		if o.Err != nil || m.Verb == tdf.VerbReschedule {
			continue
		}
		done[described(*m)]++
		if m.Repair && m.Verb != tdf.VerbArchive {
			s.log.Warn("mended a task that somebody left half-way", "task", m.ID, "how", m.Note)
		}
	}
	return err
}

// described names a move for the log: the state it led to, and for a task that is open again why.
func described(m tdf.Move) string {
	switch {
	case m.Verb == tdf.VerbArchive:
		return string(m.To)
	case m.Verb == tdf.VerbRepair || m.Repair:
		return "mended"
	case m.Verb == tdf.VerbRescore:
		return "rescored"
	case m.To == tdf.Open:
		return "open_again"
	case m.Verb == tdf.VerbLose:
		return "lost"
	}
	return string(m.To)
}
