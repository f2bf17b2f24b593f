package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf"
)

// The tasks that are meant, by what can be done to them.
type meant struct {
	able  []taskRef
	left  []string // why others are left as they are
	unfit bool     // of these, some for their states
	in    map[tdf.State]int
}

func (h *hand) meant(ctx context.Context, m *client, args []string) (*meant, error) {
	q, err := h.filter.query(ctx, m, args)
	if err != nil {
		return nil, err
	}
	if len(q.States)+len(q.Outcomes)+len(q.IDs) == 0 {
		q.States, q.Outcomes = h.states, h.outcomes
	}
	q.OldestFirst, h.from = true, q.States
	found := &meant{in: map[tdf.State]int{}}
	ids := map[int64]bool{}
	for t, err := range m.all(ctx, q) {
		if err != nil {
			return nil, err
		}
		found.add(t, h.verb)
		ids[t.ID] = true
	}
	if len(ids) == 0 && h.filter.failure != "" {
		return found, h.knownFailure(ctx, m)
	}
	return found, h.missing(ctx, m, args, ids, found)
}

func (f *meant) add(t *tdf.Task, verb tdf.Verb) {
	f.in[t.State]++
	if startsFrom(verb, t.State) {
		f.able = append(f.able, taskRef{ID: t.ID, Round: t.Round})
		return
	}
	f.left, f.unfit = append(f.left, fmt.Sprintf("task %d: it is %s", t.ID, t.State)), true
}

// startsFrom says whether somebody may do this to a task in that state.
func startsFrom(verb tdf.Verb, state tdf.State) bool {
	return slices.ContainsFunc(tdf.Transitions, func(tr tdf.Transition) bool {
		return tr.Verb == verb && slices.Contains(tr.From, state) && slices.Contains(tr.By, tdf.Manager)
	})
}

// missing notes the arguments that name no task.
func (h *hand) missing(ctx context.Context, m *client, args []string, found map[int64]bool, to *meant) error {
	missing, err := missing(ctx, m, args, found)
	to.left = append(to.left, missing...)
	return err
}

// tellMissing says which arguments name no task, if there are any.
func (a *app) tellMissing(ctx context.Context, m *client, args []string, found map[int64]bool) error {
	missing, err := missing(ctx, m, args, found)
	if err != nil || len(missing) == 0 {
		return err
	}
	for i, line := range missing {
		if i == mostNamed {
			a.say("… and %d more", len(missing)-i)
			break
		}
		a.say("%s", line)
	}
	return errNotWell
}

// missing returns a line for each argument that names no task, most likely a slip. Tasks that were found need not be looked for.
func missing(ctx context.Context, m *client, args []string, found map[int64]bool) (lines []string, err error) {
	for _, arg := range args {
		ids, err := parseIDs([]string{arg})
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(ids, func(id int64) bool { return found[id] }) {
			continue
		}
		there, err := thereIs(ctx, m, taskQuery{IDs: ids})
		if err != nil {
			return nil, err
		}
		if !there {
			lines = append(lines, fmt.Sprintf("%s: there is no such task", arg))
		}
	}
	return lines, nil
}

// knownFailure refuses a group of failures that there is not, as [filter.known] does a campaign.
func (h *hand) knownFailure(ctx context.Context, m *client) error {
	there, err := thereIs(ctx, m, taskQuery{Failure: h.filter.failure, States: tdf.States})
	if err == nil && !there {
		err = usage("there is no group of failures %q in this namespace: tdf failures lists them", h.filter.failure)
	}
	return err
}

// thereIs says whether there is a task that q means.
func thereIs(ctx context.Context, m *client, q taskQuery) (bool, error) {
	for _, err := range m.all(ctx, q) {
		return err == nil, err
	}
	return false, nil
}

func describe(in map[tdf.State]int) string {
	n := 0
	var parts []string
	for _, state := range tdf.States {
		if in[state] > 0 {
			n += in[state]
			parts = append(parts, fmt.Sprintf("%s %d", state, in[state]))
		}
	}
	switch n {
	case 0:
		return "no such task"
	case 1:
		return "1 task: " + parts[0]
	}
	return fmt.Sprintf("%d tasks: %s", n, strings.Join(parts, ", "))
}

// scopes say which tasks a command is for, and what is for others.
var scopes = map[tdf.Verb]string{
	tdf.VerbReopen:  "tdf retry is for finished tasks; tdf requeue takes running ones from their workers",
	tdf.VerbCancel:  "tdf cancel is for open and running tasks",
	tdf.VerbArchive: "tdf archive is for tasks that succeeded, failed, timed out or expired",
	tdf.VerbRemove:  "tdf rm is for finished tasks; tdf cancel gives up others first",
	tdf.VerbRelease: "tdf requeue is for running tasks",
	tdf.VerbChange:  "tdf set is for open tasks; tdf retry can change finished ones on the way",
}

// tellLeft says to which tasks it will not be done.
func (h *hand) tellLeft(found *meant) {
	h.name(found.left)
	if found.unfit {
		h.a.say("%s", scopes[h.verb])
	}
}

// mostNamed is how many tasks are named that are left as they are.
const mostNamed = 5

func (h *hand) name(left []string) {
	for i, why := range left {
		if i == mostNamed {
			h.a.say("… and %d more", len(left)-i)
			return
		}
		h.a.say("not %s: %s", h.past, why)
	}
}
