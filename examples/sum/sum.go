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

// A sum computes the sum of a plan. Its tasks belong to one group.
//
// All state is in Redis. So a killed manager can be restarted, and several managers may run at once:
//   - The meta of each task is its place in the plan. An archived task keeps its result.
//   - The last task of a bucket is archived only when all results of the bucket exist. The step that archives this
//     task also opens its parent. So each parent is opened once.
//   - A new manager reads the results of archived tasks from Redis.
type sum struct {
	*plan
	m      *manager.Manager
	source string
	group  string

	results  map[place]int64
	archived int64 // number of archived tasks whose results have been read
	failure  error // why the sum cannot be computed
	aborted  bool  // whether the open tasks have been cancelled
}

func newSum(m *manager.Manager, p *plan, source, group string) *sum {
	return &sum{plan: p, m: m, source: source, group: group, results: map[place]int64{}}
}

// compute opens the missing tasks, waits until all tasks are archived, and returns the sum.
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
		return 0, fmt.Errorf("group %s has no result: its last task is not in Redis; start again with another -run",
			s.group)
	}
	return total, nil
}

// begin opens the missing tasks of level 0. If two managers begin at the same time, they may open a task twice. That
// costs time, but does not change the sum.
func (s *sum) begin(ctx context.Context) error {
	present := map[place]bool{}
	for t, err := range s.m.List(ctx, manager.Query{Group: s.group}) {
		if err != nil {
			return err
		}
		present[placeOf(t)] = true
	}
	if err := s.readArchived(ctx); err != nil {
		return err
	}
	var missing []manager.Definition
	for i := int64(0); i < s.widths[0] && s.failure == nil; i++ {
		if at := (place{0, i}); !present[at] {
			missing = append(missing, s.task(at, s.numbers(i)))
		}
	}
	_, err := s.m.Open(ctx, missing...)
	return err
}

func (s *sum) task(at place, input string) manager.Definition {
	meta, _ := json.Marshal(at) // Marshal cannot fail, because a place consists of numbers
	return manager.Definition{Program: programName, Source: s.source, Input: input, Group: s.group, Meta: string(meta)}
}

// placeOf returns the place in the meta of a task. If the meta is not a place, the returned place is in no plan.
func placeOf(t *manager.Task) place {
	at := place{Level: -1}
	if json.Unmarshal([]byte(t.Meta), &at) != nil {
		return place{Level: -1}
	}
	return at
}

// succeeded records the result of a task. If the task is the last one of its bucket, succeeded also opens the parent.
func (s *sum) succeeded(_ context.Context, t *manager.Finished) error {
	s.record(t.Task)
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
	s.record(t.Task)
	return nil
}

// record stores the result of a task, or its failure.
func (s *sum) record(t *manager.Task) {
	at := placeOf(t)
	result, err := strconv.ParseInt(strings.TrimSpace(t.Output()), 10, 64)
	switch {
	case !s.holds(at):
		err = fmt.Errorf("the meta %q is not a place of this sum; use another -run, because other tasks use the group",
			t.Meta)
	case t.Outcome != string(tdf.Succeeded):
		err = fmt.Errorf("%s: %s", t.Outcome, strings.TrimSpace(t.Stderr()))
	case err != nil:
		err = fmt.Errorf("the output %q is not a number", t.Output())
	}
	if err != nil {
		if s.failure == nil {
			s.failure = fmt.Errorf("task %d (input %s) of group %s: %w", t.ID, t.Input, s.group, err)
		}
		return
	}
	s.results[at] = result
}

// endOfRound reads the results that another manager has archived. If the sum has failed, it cancels the open tasks.
func (s *sum) endOfRound(ctx context.Context, round manager.Summary) error {
	s.archived += int64(round.Archived)
	if round.Counts[tdf.Archived] > s.archived {
		if err := s.readArchived(ctx); err != nil {
			return err
		}
	}
	if s.failure == nil || s.aborted {
		return nil
	}
	s.aborted = true
	_, err := s.m.CancelOpen(ctx, s.group)
	return err
}

// readArchived reads the results of all archived tasks.
func (s *sum) readArchived(ctx context.Context) error {
	s.archived = 0
	for t, err := range s.m.List(ctx, manager.Query{
		Group: s.group, States: []tdf.State{tdf.Archived},
		Read: manager.ReadOutput,
	}) {
		if err != nil {
			return err
		}
		s.archived++
		s.record(t)
	}
	return nil
}
