package main

import (
	"bufio"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
)

// An export is a call of results.
type export struct {
	a        *app
	filter   filter
	csv      bool
	sheet    bool // --spreadsheet
	jsonl    bool
	noOutput bool
	wait     bool
}

func newResults(a *app) *cobra.Command {
	e := export{a: a}
	c := &cobra.Command{
		Use: "results [CAMPAIGN] [FILTER]", Short: "Write the results of tasks as a table",
		Long: "Writes a row for each task, by id: its parameters, how it ended, times and costs, the fields of its result.json, and what it printed.\n" +
			"CSV has a column for each parameter; a cell that is no text is in base64, and the column base64 names it. JSON lines are those of\n" +
			"tdf show --json without the details. docs/python.md reads both into pandas. To open CSV in a spreadsheet, write it with --spreadsheet.",
		Example: "  tdf results grid --state succeeded --csv > grid.csv",
		Args:    atMostOne("CAMPAIGN"),

		ValidArgsFunction: a.completeCampaign,
		RunE: func(c *cobra.Command, args []string) error {
			if e.csv && e.jsonl {
				return usage("--csv or --jsonl, not both")
			}
			if e.sheet && e.jsonl {
				return usage("--spreadsheet is for CSV, not for --jsonl")
			}
			if len(args) > 0 {
				if e.filter.campaign != "" && e.filter.campaign != args[0] {
					return usage("campaign %q or --campaign %q?", args[0], e.filter.campaign)
				}
				e.filter.campaign = args[0]
			}
			return e.run(c.Context())
		},
	}
	e.filter.flags(c)
	c.Flags().BoolVar(&e.csv, "csv", false, "comma-separated values, the names in the first row (the default)")
	c.Flags().BoolVar(&e.sheet, "spreadsheet", false, "CSV for a spreadsheet: an apostrophe before cells that it would take for formulas")
	c.Flags().BoolVar(&e.jsonl, "jsonl", false, "a JSON object a line")
	c.Flags().BoolVar(&e.wait, "wait", false, "wait until no task of the campaign is open, running or executed")
	c.Flags().BoolVar(&e.noOutput, "no-output", false, "without what was printed to stdout and stderr")
	return c
}

func (e *export) run(ctx context.Context) error {
	if err := e.filter.check(nil, ""); err != nil {
		return err
	}
	m, err := e.a.manager(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	q, err := e.filter.query(ctx, m, nil)
	if err != nil {
		return err
	}
	if err := e.finished(ctx, m); err != nil {
		return err
	}
	out := bufio.NewWriterSize(e.a.stdout, 1<<16)
	write := e.writeCSV
	if e.jsonl {
		write = e.writeLines
	}
	n, err := write(ctx, m, q, out)
	if err = errors.Join(err, out.Flush()); err == nil {
		e.a.say("%s", tasks(n))
	}
	return err
}

const waitPause = 500 * time.Millisecond

// finished waits until all is done, if it is to; else it says that not all is.
func (e *export) finished(ctx context.Context, m *client) error {
	if e.wait {
		return e.waitForAll(ctx, m)
	}
	var groups []string
	if e.filter.campaign != "" {
		groups = []string{e.filter.campaign}
	}
	counts, err := m.Counts(ctx, groups...)
	if n := counts.Unfinished(); err == nil && n > 0 {
		e.a.say("%s not done yet: --wait waits for all, %s shows how far they are", are(n), watchCommand(e.filter.campaign))
	}
	return err
}

// waitForAll says what it waits for, and what would have it wait for ever.
func (e *export) waitForAll(ctx context.Context, m *client) error {
	watch, missing := m.admin().Watch(e.filter.campaign), warnings{say: e.a.say, campaign: e.filter.campaign}
	for told := false; ; told = true {
		s, err := watch.Look(ctx)
		n := s.Counts.Unfinished()
		switch {
		case err != nil:
			return err
		case told && s.Counts.Total() == 0:
			return errGone
		case n == 0:
			return nil
		case !told:
			e.a.say("waiting: %s not done yet", are(n))
		}
		missing.about(&s)
		if err := sleep(ctx, waitPause); err != nil {
			return err
		}
	}
}

var errGone = errors.New("the tasks that were waited for are gone: removed, or lost by a Redis that keeps nothing when it ends")

func are(n int64) string {
	if n == 1 {
		return "1 task is"
	}
	return counted(n, "task") + " are"
}

func (e *export) writeLines(ctx context.Context, m *client, q taskQuery, out *bufio.Writer) (n int, err error) {
	lines := jsonLines(out)
	for t, err := range m.results(ctx, q, !e.noOutput) {
		if err != nil {
			return n, err
		}
		j := taskToJSON(t)
		j.textsJSON = textsToJSON(t.Rounds.At(t.LastRun()))
		if e.noOutput {
			j.textsJSON = &textsJSON{Result: j.Result}
		}
		if err := lines.Encode(j); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
