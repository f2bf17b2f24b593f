package main

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/selection"
	"github.com/tdf-framework/tdf/manager"
)

// A filter holds the flags that select tasks.
type filter struct {
	selection.Filter
	queueFlag string // name of the flag for the queue, if it is not queue
}

// flags adds the filter's flags to a command.
func (f *filter) flags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringSliceVar(&f.States, "state", nil, "`STATE` one or more states: "+strings.Join(selection.States(), ", "))
	flags.StringSliceVar(&f.Outcomes, "outcome", nil, "`OUTCOME` one or more outcomes, also of archived tasks: "+strings.Join(selection.Outcomes(), ", "))
	flags.StringVar(&f.Group, "campaign", "", "`NAME` name of the campaign (the tasks' group)")
	f.queueFlag = cmp.Or(f.queueFlag, "queue")
	flags.StringVar(&f.Queue, f.queueFlag, "", "`NAME` name of the queue, or default for the tasks without a queue")
	flags.StringVar(&f.Program, "of", "", "`PROGRAM` name of the program; * and ? are wildcards")
	flags.StringVar(&f.Worker, "worker", "", "`NAME` name of the worker of the last run")
	flags.StringVar(&f.Exit, "exit", "", "`STATUS` exit status of the last run: 0 to 255, a signal such as 'signal: killed', or 'signal' for any signal")
	flags.StringVar(&f.OlderThan, "older-than", "", "`SPAN` minimum time in the current state, such as 90s or 2h")
	flags.StringVar(&f.NewerThan, "newer-than", "", "`SPAN` maximum time in the current state")
	flags.StringVar(&f.Output, "output-has", "", "`TEXT` text in the stdout of the last run")
	flags.StringVar(&f.Error, "error-has", "", "`TEXT` text in the stderr of the last run")
	flags.StringVar(&f.Failure, "failure", "", "`ID` failure group of the last failure, from tdf failures")
}

// given reports whether the user gave ids or flags of the filter.
func (f *filter) given(ids []string) bool { return len(ids) > 0 || !f.Empty() }

// check returns an error for invalid flags and ids. It needs no connection to Redis.
func (f *filter) check(ids []string, cursor string) error {
	q, err := f.at(time.Time{}, ids)
	if err == nil {
		q.Since, q.Before = time.Time{}, time.Time{}
		err = listing.Validate(q, cursor)
	}
	return err
}

// at returns the query for the flags and ids, at a time of Redis's clock.
func (f *filter) at(now time.Time, ids []string) (manager.Query, error) {
	f.IDs = ids
	q, err := f.Query(now)
	return q, invalidFilter(err)
}

// query returns the query for the flags and ids. An unknown campaign is an error.
func (f *filter) query(ctx context.Context, m *client, ids []string) (manager.Query, error) {
	q, err := f.at(time.Time{}, ids)
	if err != nil {
		return q, err
	}
	if err := f.checkCampaign(ctx, m); err != nil || !f.NeedsClock() {
		return q, err
	}
	now, err := m.Now(ctx)
	if err != nil {
		return q, err
	}
	return f.at(now, ids)
}

// checkCampaign returns an error for a campaign without tasks, because its name is probably misspelt.
func (f *filter) checkCampaign(ctx context.Context, m *client) error {
	if f.Group == "" {
		return nil
	}
	counts, err := m.Counts(ctx, f.Group)
	if err == nil && counts.Total() == 0 {
		err = unknownCampaign(f.Group)
	}
	return err
}

// parseIDs reads ids and ranges of ids, such as 7 and 12-40.
func parseIDs(args []string) ([]int64, error) {
	ids, err := selection.IDs(args)
	return ids, invalidFilter(err)
}
