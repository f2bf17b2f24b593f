package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/manager"
)

// A choice holds the tasks that ids and filters selected for a command that changes tasks (cancel, retry, ...).
type choice struct {
	eligible   []manager.Ref
	skipped    []string          // a text about each task that is not eligible, with the reason
	wrongState bool              // a task was skipped because of its state
	counts     map[tdf.State]int // number of selected tasks in each state
	states     []tdf.State       // states of the query; empty means all states
}

// selectTasks returns the tasks that the arguments and flags select.
func (s *steering) selectTasks(ctx context.Context, m *client, args []string) (*choice, error) {
	q, err := s.filter.query(ctx, m, args)
	if err != nil {
		return nil, err
	}
	if len(q.States)+len(q.Outcomes)+len(q.IDs) == 0 {
		q.States, q.Outcomes = s.states, s.outcomes
	}
	q.Order = manager.OldestFirst
	chosen := &choice{counts: map[tdf.State]int{}, states: q.States}
	ids := map[int64]bool{}
	for t, err := range m.List(ctx, q) {
		if err != nil {
			return nil, err
		}
		chosen.add(t, s.verb)
		ids[t.ID] = true
	}
	if len(ids) == 0 && s.filter.Failure != "" {
		return chosen, s.filter.checkFailure(ctx, m)
	}
	unknown, err := unknownIDs(ctx, m, args, ids)
	chosen.skipped = append(chosen.skipped, unknown...)
	return chosen, err
}

func (s *choice) add(t *manager.Task, verb tdf.Verb) {
	s.counts[t.State]++
	if startsFrom(verb, t.State) {
		s.eligible = append(s.eligible, t.Ref())
		return
	}
	s.skipped, s.wrongState = append(s.skipped, fmt.Sprintf("task %d: it is %s", t.ID, t.State)), true
}

// startsFrom reports whether a user may apply the verb to a task in this state.
func startsFrom(verb tdf.Verb, state tdf.State) bool {
	return slices.ContainsFunc(tdf.Transitions, func(tr tdf.Transition) bool {
		return tr.Verb == verb && slices.Contains(tr.From, state) && slices.Contains(tr.By, tdf.Manager)
	})
}

// String returns the number of selected tasks, and the number in each state.
func (s *choice) String() string {
	n := 0
	var parts []string
	for _, state := range tdf.States {
		if s.counts[state] > 0 {
			n += s.counts[state]
			parts = append(parts, fmt.Sprintf("%d %s", s.counts[state], state))
		}
	}
	if n == 0 {
		return "no task selected"
	}
	return fmt.Sprintf("%s selected (%s)", tasks(n), strings.Join(parts, ", "))
}

// sayNotEligible prints which tasks of the selection are not eligible.
func (s *steering) sayNotEligible(chosen *choice) {
	s.saySkipped(chosen.skipped)
	if chosen.wrongState {
		s.a.say("%s", s.scope)
	}
}

// maxNamed is the maximum number of skipped tasks that a command prints one by one.
const maxNamed = 5

func (s *steering) saySkipped(reasons []string) {
	for i, reason := range reasons {
		if i == maxNamed {
			s.a.say("… and %d more", len(reasons)-i)
			return
		}
		s.a.say("skipped %s", reason)
	}
}

// reportUnknown prints the arguments that name no existing task. If it has printed an argument, it returns errProblems.
func (a *app) reportUnknown(ctx context.Context, m *client, args []string, existing map[int64]bool) error {
	unknown, err := unknownIDs(ctx, m, args, existing)
	if err != nil || len(unknown) == 0 {
		return err
	}
	for i, line := range unknown {
		if i == maxNamed {
			a.say("… and %d more", len(unknown)-i)
			break
		}
		a.say("%s", line)
	}
	return errProblems
}

// unknownIDs returns a line for each argument that names no existing task. The map has an entry for each id
// whose task is known to exist.
func unknownIDs(ctx context.Context, m *client, args []string, existing map[int64]bool) (lines []string, err error) {
	for _, arg := range args {
		ids, err := parseIDs([]string{arg})
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(ids, func(id int64) bool { return existing[id] }) {
			continue
		}
		exists, err := matchesAny(ctx, m, manager.Query{IDs: ids})
		if err != nil {
			return nil, err
		}
		if !exists {
			lines = append(lines, arg+": no such task")
		}
	}
	return lines, nil
}

// checkFailure returns an error for an unknown failure group.
func (f *filter) checkFailure(ctx context.Context, m *client) error {
	exists, err := matchesAny(ctx, m, manager.Query{Failure: f.Failure, States: tdf.States})
	if err == nil && !exists {
		err = usage("unknown failure group %q: no task of this namespace is in it; tdf failures lists the groups", f.Failure)
	}
	return err
}

// matchesAny reports whether any task matches the query.
func matchesAny(ctx context.Context, m *client, q manager.Query) (bool, error) {
	for _, err := range m.List(ctx, q) {
		return err == nil, err
	}
	return false, nil
}
