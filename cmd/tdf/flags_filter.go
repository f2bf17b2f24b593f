package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/manager"
)

// A filter holds the flags that select tasks.
type filter struct {
	states, outcomes     []string
	campaign, program    string
	queue                string
	queueFlag            string // name of the flag for the queue, if it is not queue
	worker, exit         string
	olderThan, newerThan string
	output, err, failure string
}

// flags adds the filter's flags to a command.
func (f *filter) flags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringSliceVar(&f.states, "state", nil, "`STATE` one or more states: "+strings.Join(stateValues(), ", "))
	flags.StringSliceVar(&f.outcomes, "outcome", nil, "`OUTCOME` one or more outcomes, also of archived tasks: "+strings.Join(outcomeValues(), ", "))
	flags.StringVar(&f.campaign, "campaign", "", "`NAME` name of the campaign (the tasks' group)")
	f.queueFlag = cmp.Or(f.queueFlag, "queue")
	flags.StringVar(&f.queue, f.queueFlag, "", "`NAME` name of the queue, or default for the tasks without a queue")
	flags.StringVar(&f.program, "of", "", "`PROGRAM` name of the program; * and ? are wildcards")
	flags.StringVar(&f.worker, "worker", "", "`NAME` name of the worker of the last run")
	flags.StringVar(&f.exit, "exit", "", "`STATUS` exit status of the last run: 0 to 255, a signal such as 'signal: killed', or 'signal' for any signal")
	flags.StringVar(&f.olderThan, "older-than", "", "`SPAN` minimum time in the current state, such as 90s or 2h")
	flags.StringVar(&f.newerThan, "newer-than", "", "`SPAN` maximum time in the current state")
	flags.StringVar(&f.output, "output-has", "", "`TEXT` text in the stdout of the last run")
	flags.StringVar(&f.err, "error-has", "", "`TEXT` text in the stderr of the last run")
	flags.StringVar(&f.failure, "failure", "", "`ID` failure group of the last failure, from tdf failures")
}

// given reports whether the user gave ids or flags of the filter.
func (f *filter) given(ids []string) bool {
	return len(ids)+len(f.states)+len(f.outcomes) > 0 || f.campaign+f.queue+f.program+f.worker+f.exit+f.output+f.err+f.failure+f.olderThan+f.newerThan != ""
}

// check returns an error for invalid flags and ids. It needs no connection to Redis.
func (f *filter) check(ids []string, cursor string) error {
	q, err := f.read(ids)
	if err == nil {
		err = q.Validate(cursor)
	}
	return err
}

// query returns the query for the flags and ids. An unknown campaign is an error.
func (f *filter) query(ctx context.Context, m *client, ids []string) (manager.Query, error) {
	q, err := f.read(ids)
	if err != nil {
		return q, err
	}
	if err := f.checkCampaign(ctx, m); err != nil {
		return q, err
	}
	if f.olderThan+f.newerThan == "" {
		return q, nil
	}
	now, err := m.Now(ctx)
	if err == nil {
		err = f.readSpans(now, &q)
	}
	return q, err
}

// read returns the query, but without --older-than and --newer-than, because these times depend on Redis's clock. It only
// checks that the values of these two flags are valid.
func (f *filter) read(ids []string) (manager.Query, error) {
	q := manager.Query{
		Group: f.campaign, Outcomes: f.outcomes, Queue: f.queue, Program: f.program, Worker: f.worker, Exit: f.exit,
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
		if !slices.Contains(outcomeValues(), o) {
			return q, usage("invalid value %q for --outcome: want %s", o, strings.Join(outcomeValues(), ", "))
		}
	}
	return q, f.readSpans(time.Time{}, &manager.Query{})
}

// checkCampaign returns an error for a campaign without tasks, because its name is probably misspelt.
func (f *filter) checkCampaign(ctx context.Context, m *client) error {
	if f.campaign == "" {
		return nil
	}
	counts, err := m.Counts(ctx, f.campaign)
	if err == nil && counts.Total() == 0 {
		err = unknownCampaign(f.campaign)
	}
	return err
}

// readSpans converts --older-than and --newer-than to times.
func (f *filter) readSpans(now time.Time, q *manager.Query) error {
	for _, t := range []struct {
		flag, text string
		to         *time.Time
	}{{"older-than", f.olderThan, &q.Before}, {"newer-than", f.newerThan, &q.Since}} {
		if t.text == "" {
			continue
		}
		span, err := parseSpan(t.text)
		if err != nil || span == tdf.Forever {
			return usage("invalid value %q for --%s: want seconds, or a span such as 90s or 2h30m", t.text, t.flag)
		}
		*t.to = now.Add(-span.Std())
	}
	return nil
}

func parseStates(names []string) ([]tdf.State, error) {
	var states []tdf.State
	for _, name := range names {
		if !slices.Contains(tdf.States, tdf.State(name)) {
			return nil, usage("invalid value %q for --state: want %s", name, strings.Join(stateValues(), ", "))
		}
		states = append(states, tdf.State(name))
	}
	return states, nil
}

func stateValues() []string {
	var all []string
	for _, s := range tdf.States {
		all = append(all, string(s))
	}
	return all
}

func outcomeValues() []string {
	var all []string
	for _, s := range tdf.States {
		if s.Settled() {
			all = append(all, string(s))
		}
	}
	return append(all, tdf.Cancelled)
}

// maxRange is the largest number of ids in a range such as 1-500.
const maxRange = 1_000_000

// parseIDs reads ids and ranges of ids, such as 7 and 12-40.
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
			return nil, usage("invalid id %q: want a number, or a range such as 12-40; use --campaign for a campaign, and --failure for a failure group", arg)
		case to-from >= maxRange:
			return nil, usage("invalid range %q: want at most %d ids", arg, maxRange)
		}
		for n := range to - from + 1 { // a condition id <= to would always hold if to is the highest int64
			ids = append(ids, from+n)
		}
	}
	return ids, nil
}

// parseID reads the id of a task.
func parseID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, usage("invalid id %q: want a number above 0", text)
	}
	return id, nil
}
