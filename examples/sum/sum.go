package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/manager"
)

const programName = "sum"

// A sum computes a plan's sum with the tasks of one group.
//
// Nothing is lost with the manager. Each task carries its place in its meta, and its result
// stays when it is archived. The task at the last place of a bucket is archived only when all
// results of the bucket are there, and in the same atomic step its parent is opened: however
// many managers look after the group, and wherever one of them dies, that happens once. What
// is in memory is read from Redis again by a manager that starts anew.
type sum struct {
	*plan
	m      *manager.Manager
	source string
	group  string

	results  map[place]int64
	archived int64 // how many archived tasks of the group are known
	failure  error // why there will be no sum
	given    bool  // up: what is still open is cancelled
}

func newSum(m *manager.Manager, p *plan, source, group string) *sum {
	return &sum{plan: p, m: m, source: source, group: group, results: map[place]int64{}}
}

// compute returns the sum when all tasks are archived.
func (s *sum) compute(ctx context.Context) (int64, error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	err := s.m.Run(ctx, manager.Callbacks{
		Groups:     []string{s.group},
		Succeeded:  s.succeeded,
		Failed:     s.failed,
		TimedOut:   s.failed,
		Expired:    s.failed,
		EndOfRound: s.endOfRound,
	})
	if err = errors.Join(err, s.failure); err != nil {
		return 0, err
	}
	total, ok := s.results[s.root()]
	if !ok {
		return 0, fmt.Errorf("all tasks of group %s are done, but the last one is missing: was something removed from Redis?", s.group)
	}
	return total, nil
}

// begin opens those tasks of level 0 that are not there. Two managers that begin at the same
// time may open some twice: that is work done twice, but it gives the same results.
func (s *sum) begin(ctx context.Context) error {
	there := map[place]bool{}
	for t, err := range s.m.List(ctx, manager.Query{Group: s.group}) {
		if err != nil {
			return err
		}
		there[placeOf(t)] = true
	}
	if err := s.readArchived(ctx); err != nil {
		return err
	}
	var missing []manager.Definition
	for i := int64(0); i < s.widths[0] && s.failure == nil; i++ {
		if at := (place{0, i}); !there[at] {
			missing = append(missing, s.task(at, s.numbers(i)))
		}
	}
	_, err := s.m.Open(ctx, missing...)
	return err
}

func (s *sum) task(at place, input string) manager.Definition {
	meta, _ := json.Marshal(at) // two numbers
	return manager.Definition{Program: programName, Source: s.source, Input: input, Group: s.group, Meta: string(meta)}
}

// placeOf returns where a task says that it stands; nowhere if it does not.
func placeOf(t *manager.Task) place {
	at := place{Level: -1}
	if json.Unmarshal([]byte(t.Meta), &at) != nil {
		return place{Level: -1}
	}
	return at
}

// succeeded archives a task, and with the last one of a bucket opens the one that sums its results.
func (s *sum) succeeded(_ context.Context, t *manager.Finished) error {
	s.note(t.Task)
	at := placeOf(t.Task)
	if s.failure != nil || !s.opens(at) {
		return nil
	}
	parent := s.parent(at)
	var results []int64
	for _, child := range s.children(parent) {
		r, ok := s.results[child]
		if !ok {
			return manager.ErrNotYet
		}
		results = append(results, r)
	}
	t.Open(s.task(parent, join(results)))
	return nil
}

func (s *sum) failed(_ context.Context, t *manager.Finished) error {
	s.note(t.Task)
	return nil
}

// note keeps what became of a task.
func (s *sum) note(t *manager.Task) {
	at := placeOf(t)
	result, err := strconv.ParseInt(strings.TrimSpace(t.Output()), 10, 64)
	switch {
	case !s.holds(at):
		err = fmt.Errorf("it says of itself %q, which is no place in this sum: is the group used by something else?", t.Meta)
	case t.Outcome != string(tdf.Succeeded):
		err = fmt.Errorf("%s: %s", t.Outcome, strings.TrimSpace(t.Error()))
	case err != nil:
		err = fmt.Errorf("it printed %q, which is no number", t.Output())
	}
	if err != nil {
		if s.failure == nil {
			s.failure = fmt.Errorf("task %d (input %s) of group %s: %w", t.ID, t.Input, s.group, err)
		}
		return
	}
	s.results[at] = result
}

// endOfRound catches up with what another manager has archived, and gives up after a failure.
func (s *sum) endOfRound(ctx context.Context, round manager.Summary) error {
	s.archived += int64(round.Archived)
	if round.Counts[tdf.Archived] > s.archived {
		if err := s.readArchived(ctx); err != nil {
			return err
		}
	}
	if s.failure == nil || s.given {
		return nil
	}
	s.given = true
	_, err := s.m.CancelOpen(ctx, s.group)
	return err
}

// readArchived reads the results of all archived tasks.
func (s *sum) readArchived(ctx context.Context) error {
	s.archived = 0
	for t, err := range s.m.List(ctx, manager.Query{Group: s.group, States: []tdf.State{tdf.Archived}, Read: manager.ReadOutput}) {
		if err != nil {
			return err
		}
		s.archived++
		s.note(t)
	}
	return nil
}
