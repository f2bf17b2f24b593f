package look

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/results"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// An export holds the flags of tdf results.
type export struct {
	a           *cli.App
	filter      cli.Filter
	csv         bool
	spreadsheet bool
	jsonl       bool
	noOutput    bool
	whole       bool
	wait        bool
	fields      string // one of results.Sources
	columns     []string
}

func Results(a *cli.App) *cobra.Command {
	e := export{a: a}
	c := &cobra.Command{
		Use: "results [CAMPAIGN] [FILTER]", Short: "Write the results of tasks as CSV or JSON lines",
		Long: "Writes a row for each task, sorted by id: parameters, outcome, times, costs, the fields of the " +
			"result, stdout and stderr.\n" +
			"CSV has a column for each parameter and for each field of result.json. If a run wrote no result.json, " +
			"its fields are the numbers in the\n" +
			"JSON object that the program printed as its last line. A field that only tasks between the first and " +
			"the newest 1,000 have is in the\n" +
			"column other_columns. A cell that is not text is written in base64. The cell base64 of the row contains " +
			"the names of such columns.\n" +
			"JSON lines contain the fields of tdf ls --json, and stdout and stderr; with --whole, they contain all " +
			"rounds and the log. docs/python.md shows\n" +
			"how to read both formats with pandas.",
		Example: "  tdf results grid --state succeeded --csv > grid.csv\n" +
			"  tdf results grid --columns n,seconds,result.loss --wait\n  tdf results grid --wait --jsonl | jq .output\n" +
			"  tdf results grid --whole | gzip > grid.jsonl.gz",
		Args: cli.AtMostOne("CAMPAIGN"),

		RunE: func(c *cobra.Command, args []string) error {
			e.jsonl = e.jsonl || e.whole
			if e.csv && e.jsonl {
				return cli.Usagef("--csv with --jsonl or --whole: want one format")
			}
			if e.spreadsheet && e.jsonl {
				return cli.Usagef("--spreadsheet with --jsonl: a spreadsheet needs CSV")
			}
			if c.Flags().Changed("fields") && e.jsonl {
				return cli.Usagef("--fields with --jsonl: only CSV has columns for fields")
			}
			if c.Flags().Changed("columns") && e.jsonl {
				return cli.Usagef("--columns with --jsonl: only CSV has columns")
			}
			if !slices.Contains(results.Sources, e.fields) {
				return cli.Usagef("invalid value %q for --fields: want %s", e.fields, strings.Join(results.Sources,
					", "))
			}
			if len(args) > 0 {
				if err := e.filter.SetCampaign(args[0]); err != nil {
					return err
				}
			}
			return e.run(c.Context())
		},
	}
	e.filter.Flags(c)
	c.Flags().BoolVar(&e.csv, "csv", false, "CSV with column names in the first row (default)")
	c.Flags().BoolVar(&e.spreadsheet, "spreadsheet", false,
		"CSV for a spreadsheet, with an apostrophe before cells that look like formulas")
	c.Flags().BoolVar(&e.jsonl, "jsonl", false, "one JSON object per line")
	c.Flags().BoolVar(&e.whole, "whole", false,
		"one JSON object per line, as tdf show --json writes it: all rounds with their outputs, and the log")
	c.Flags().StringVar(&e.fields, "fields", results.FromAuto,
		"`SOURCE` source of the fields: result.json, last-line, or auto for result.json and otherwise the last line")
	c.Flags().StringSliceVar(&e.columns, "columns", nil,
		"`NAME[,NAME…]` write these columns of the CSV, in this order; an unknown name lists them")
	c.Flags().BoolVar(&e.wait, "wait", false, "wait for all unfinished tasks before writing")
	c.Flags().BoolVar(&e.noOutput, "no-output", false, "results without stdout and stderr")
	return c
}

func (e *export) run(ctx context.Context) error {
	if err := e.filter.Check(nil, ""); err != nil {
		return err
	}
	return e.a.WithShards(ctx, func(s *cli.Shards) error {
		chosen, err := e.filter.Resolve(ctx, s, nil)
		if err != nil {
			return err
		}
		if err := e.waitOrWarn(ctx, s); err != nil {
			return err
		}
		all := func(change func(*manager.Query)) iter.Seq2[*manager.Task, error] {
			return s.List(ctx, chosen.With(change))
		}
		out := &prompt{out: bufio.NewWriterSize(e.a.Stdout, 1<<16)}
		write := e.writeCSV
		if e.whole {
			write = func(all results.Source, out io.Writer) (int, error) { return e.writeWhole(ctx, s, all, out) }
		} else if e.jsonl {
			write = e.writeLines
		}
		n, err := write(all, out)
		err = errors.Join(err, out.Flush())
		if err != nil {
			return err
		}
		e.a.Say("%s", format.Tasks(n))
		return nil
	})
}

const waitPause = 500 * time.Millisecond

// waitOrWarn waits for unfinished tasks if --wait is given. Otherwise, it prints the number of unfinished tasks.
func (e *export) waitOrWarn(ctx context.Context, s *cli.Shards) error {
	if e.wait {
		return e.waitForAll(ctx, s)
	}
	var groups []string
	if e.filter.Group != "" {
		groups = []string{e.filter.Group}
	}
	counts, err := s.Counts(ctx, groups...)
	if n := counts.Unfinished(); err == nil && n > 0 {
		e.a.Say("%s unfinished; --wait waits for them, %s shows the progress", format.Tasks(n),
			cli.WatchCommand(e.filter.Group))
	}
	return err
}

// waitForAll waits until all tasks have finished. It prints a warning if tasks cannot finish now.
func (e *export) waitForAll(ctx context.Context, all *cli.Shards) error {
	watch, warnings := all.Watch(e.filter.Group), watchWarnings{say: e.a.Say, campaign: e.filter.Group}
	for first := true; ; first = false {
		s, err := watch.Look(ctx)
		n := s.Counts.Unfinished()
		switch {
		case err != nil:
			return err
		case !first && s.Counts.Total() == 0:
			return errTasksGone
		case n == 0:
			return nil
		case first:
			e.a.Say("waiting for %s", format.Tasks(n))
		}
		warnings.check(&s)
		if err := cli.Sleep(ctx, waitPause); err != nil {
			return err
		}
	}
}

var errTasksGone = errors.New(
	"wait for tasks: no tasks exist any more; they were removed, or Redis lost its data at a restart")

func (e *export) writeLines(all results.Source, out io.Writer) (int, error) {
	return results.Lines(all, cli.JsonLines(out), !e.noOutput)
}

// writeWhole writes the tasks as tdf show does. It leaves out tasks that were removed since the list was read.
func (e *export) writeWhole(ctx context.Context, s *cli.Shards, all results.Source, out io.Writer) (n int, err error) {
	lines := cli.JsonLines(out)
	for t, err := range all(func(q *manager.Query) { q.Order = manager.ByID }) {
		if err != nil {
			return n, err
		}
		m, err := s.In(t.Namespace)
		if err != nil {
			return n, err
		}
		whole, err := readView(ctx, e.a, m, t.ID)
		if errors.Is(err, task.ErrNoTask) {
			continue
		}
		if err == nil {
			err = lines.Encode(whole.json())
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (e *export) writeCSV(all results.Source, out io.Writer) (int, error) {
	o := results.Options{Fields: e.fields, Output: !e.noOutput, Spreadsheet: e.spreadsheet, Columns: e.columns}
	if e.a.Terminal.Out {
		o.Cell = format.Printable
	}
	done, err := results.CSV(all, out, o)
	if done.Other > 0 {
		e.a.Say("%s with values in the column other_columns, because the first and the newest tasks have no such values; "+
			"--columns gives them columns of their own", format.Counted(done.Other, "row"))
	}
	if len(done.LeftOut) > 0 && (len(e.columns) == 0 || err != nil) { // others are not of interest
		e.a.Say("no column for fields of last lines that are no numbers: %s; for columns, write them to result.json",
			format.OneLine(strings.Join(done.LeftOut, ", "), 500))
	}
	return done.Rows, err
}
