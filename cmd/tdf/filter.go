package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
)

// A filter is the flags and arguments that say which tasks are meant.
type filter struct {
	states, outcomes     []string
	campaign, program    string
	worker, exit         string
	olderThan, newerThan string
	output, err, failure string
}

// flags adds those of a filter to a command.
func (f *filter) flags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringSliceVar(&f.states, "state", nil, "in this `STATE`, or one of several: open, running, executed, succeeded, failed, timed_out, expired, archived")
	flags.StringSliceVar(&f.outcomes, "outcome", nil, "that ended with this `OUTCOME`, archived or not: succeeded, failed, timed_out, expired, cancelled")
	flags.StringVar(&f.campaign, "campaign", "", "of the campaign `NAME` (the tasks' group)")
	flags.StringVar(&f.program, "of", "", "of this `PROGRAM`, by its name; * and ? stand for characters")
	flags.StringVar(&f.worker, "worker", "", "last run by this worker `NAME`")
	flags.StringVar(&f.exit, "exit", "", "whose last run ended with this `STATUS`: 0 to 255, signal, or 'signal: killed'")
	flags.StringVar(&f.olderThan, "older-than", "", "that entered their state more than this `TIME` ago, such as 90s, 2h")
	flags.StringVar(&f.newerThan, "newer-than", "", "that entered their state less than this `TIME` ago")
	flags.StringVar(&f.output, "output-has", "", "whose last run has this `TEXT` in its output")
	flags.StringVar(&f.err, "error-has", "", "whose last run has this `TEXT` in its error")
	flags.StringVar(&f.failure, "failure", "", "whose last failure is of this group: an `ID` of tdf failures")
}

// names says whether anything is asked for.
func (f *filter) names(ids []string) bool {
	return len(ids)+len(f.states)+len(f.outcomes) > 0 || f.campaign+f.program+f.worker+f.exit+f.output+f.err+f.failure+f.olderThan+f.newerThan != ""
}

// check refuses wrong flags and arguments before anything is asked of Redis.
func (f *filter) check(ids []string, cursor string) error {
	q, err := f.read(ids)
	if err == nil {
		err = q.Validate(cursor)
	}
	return err
}

// query returns what the flags and the arguments, which are ids, ask for.
func (f *filter) query(ctx context.Context, m *client, ids []string) (taskQuery, error) {
	q, err := f.read(ids)
	if err != nil {
		return q, err
	}
	if err := f.known(ctx, m); err != nil {
		return q, err
	}
	if f.olderThan+f.newerThan == "" {
		return q, nil
	}
	now, err := m.now(ctx)
	if err == nil {
		err = f.times(now, &q)
	}
	return q, err
}

// read is query without what only Redis can tell.
func (f *filter) read(ids []string) (taskQuery, error) {
	q := taskQuery{
		Group: f.campaign, Outcomes: f.outcomes, Program: f.program, Worker: f.worker, Exit: f.exit,
		Output: f.output, Error: f.err, Failure: f.failure,
	}
	var err error
	if q.IDs, err = parseIDs(ids); err != nil {
		return q, err
	}
	if q.States, err = parseStates(f.states); err != nil {
		return q, err
	}
	for _, o := range f.outcomes {
		if o != tdf.Cancelled && !tdf.State(o).Settled() {
			return q, usage("--outcome %q is none of succeeded, failed, timed_out, expired, cancelled", o)
		}
	}
	return q, f.times(0, &taskQuery{})
}

// known refuses a campaign that there is not, which most likely is a slip.
func (f *filter) known(ctx context.Context, m *client) error {
	if f.campaign == "" {
		return nil
	}
	counts, err := m.Counts(ctx, f.campaign)
	if err == nil && counts.Total() == 0 {
		err = usage("there is no task of a campaign %q in this namespace", f.campaign)
	}
	return err
}

// times reads the spans, which end now.
func (f *filter) times(now tdf.Time, q *taskQuery) error {
	for _, t := range []struct {
		flag, text string
		to         *tdf.Time
	}{{"older-than", f.olderThan, &q.Before}, {"newer-than", f.newerThan, &q.After}} {
		if t.text == "" {
			continue
		}
		span, err := parseSpan(t.text)
		if err != nil || span == tdf.Forever {
			return usage("--%s %q is no span: seconds, 90s, 2h30m", t.flag, t.text)
		}
		*t.to = now.Add(-span)
	}
	return nil
}

func parseStates(names []string) ([]tdf.State, error) {
	var states []tdf.State
	for _, name := range names {
		if !slices.Contains(tdf.States, tdf.State(name)) {
			return nil, usage("--state %q is none of open, running, executed, succeeded, failed, timed_out, expired, archived", name)
		}
		states = append(states, tdf.State(name))
	}
	return states, nil
}

// maxRange is how many tasks an argument such as 1-500 may name.
const maxRange = 1_000_000

// parseIDs reads ids, and ranges of them: 7 12-40.
func parseIDs(args []string) ([]int64, error) {
	var ids []int64
	for _, arg := range args {
		first, last, isRange := strings.Cut(arg, "-")
		from, err := parseID(first)
		to := from
		if err == nil && isRange {
			to, err = parseID(last)
		}
		switch {
		case err != nil || to < from:
			return nil, usage("%q is not the id of a task, nor a range such as 12-40 (a campaign is --campaign NAME, a group of failures --failure ID)", arg)
		case to-from >= maxRange:
			return nil, usage("%q names more than %d tasks", arg, maxRange)
		}
		for id := from; id <= to; id++ {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func parseID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err == nil && id < 1 {
		err = strconv.ErrRange
	}
	return id, err
}
