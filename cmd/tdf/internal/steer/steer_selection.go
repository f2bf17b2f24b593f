package steer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// A choice holds the tasks that ids and filters selected for a command that changes tasks (cancel, retry, ...).
type choice struct {
	eligible   []manager.Ref
	skipped    []string           // a text about each task that is not eligible, with the reason
	wrongState bool               // a task was skipped because of its state
	counts     map[task.State]int // number of selected tasks in each state
	states     []task.State       // states of the query; empty means all states
	campaign   string             // the campaign of all eligible tasks; "" if there is none
}

// selectTasks returns the tasks that the arguments and flags select.
func (s *steering) selectTasks(ctx context.Context, all *cli.Shards, args []string) (*choice, error) {
	queries, err := s.filter.Resolve(ctx, all, args)
	if err != nil {
		return nil, err
	}
	chosen := &choice{counts: map[task.State]int{}}
	queries = queries.With(func(q *manager.Query) {
		if len(q.States)+len(q.Outcomes)+len(q.IDs) == 0 {
			q.States, q.Outcomes = s.states, s.outcomes
		}
		q.Order, chosen.states = manager.OldestFirst, q.States
	})
	known := map[string]bool{}
	for t, err := range all.List(ctx, queries) {
		if err != nil {
			return nil, err
		}
		chosen.add(t, s.verb)
		known[t.Name()] = true
	}
	if len(known) == 0 && s.filter.Failure != "" {
		return chosen, s.filter.CheckFailure(ctx, all)
	}
	unknown, err := cli.UnknownIDs(ctx, all, args, known)
	chosen.skipped = append(chosen.skipped, unknown...)
	return chosen, err
}

func (s *choice) add(t *manager.Task, verb rules.Verb) {
	s.counts[t.State]++
	if startsFrom(verb, t.State) {
		if len(s.eligible) == 0 {
			s.campaign = t.Group
		} else if s.campaign != t.Group {
			s.campaign = ""
		}
		s.eligible = append(s.eligible, t.Ref())
		return
	}
	s.skipped, s.wrongState = append(s.skipped, fmt.Sprintf("task %s: it is %s", t.Name(), t.State)), true
}

// startsFrom reports whether a user may apply the verb to a task in this state.
func startsFrom(verb rules.Verb, state task.State) bool {
	return slices.ContainsFunc(rules.Transitions, func(tr rules.Transition) bool {
		return tr.Verb == verb && slices.Contains(tr.From, state) && slices.Contains(tr.By, rules.Manager)
	})
}

// String returns the number of selected tasks, and the number in each state.
func (s *choice) String() string {
	n := 0
	var parts []string
	for _, state := range task.States {
		if s.counts[state] > 0 {
			n += s.counts[state]
			parts = append(parts, fmt.Sprintf("%d %s", s.counts[state], state))
		}
	}
	if n == 0 {
		return "no task selected"
	}
	return fmt.Sprintf("%s selected (%s)", format.Tasks(n), strings.Join(parts, ", "))
}

// sayNotEligible prints which tasks of the selection are not eligible.
func (s *steering) sayNotEligible(chosen *choice) {
	s.saySkipped(chosen.skipped)
	if chosen.wrongState {
		s.a.Say("%s", s.scope)
	}
}

func (s *steering) saySkipped(reasons []string) {
	for i, reason := range reasons {
		if i == cli.MaxNamed {
			s.a.Say("… and %d more", len(reasons)-i)
			return
		}
		s.a.Say("skipped %s", reason)
	}
}
