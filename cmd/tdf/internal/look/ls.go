package look

import (
	"bufio"
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// A lister holds the flags of tdf ls.
type lister struct {
	a      *cli.App
	filter cli.Filter
	paging cli.Paging
	asJSON bool
	oldest bool
}

func Ls(a *cli.App) *cobra.Command {
	l := lister{a: a}
	c := &cobra.Command{
		Use: "ls [ID…] [FILTER]", Short: "List tasks",
		Long: "Lists tasks, the newest first. Tasks of one campaign are sorted by id, others by the time at which " +
			"they entered their states.\n" +
			"The state of an open task says whether it waits for other tasks or for a limit, or is not due yet. " +
			"With --campaign, a message says\n" +
			"whether the campaign is closed and complete. For filters other than state, campaign and time, the " +
			"command reads one task after the\n" +
			"other. It stops after about half a second, and prints the command that continues the search.",
		Example: "  tdf ls --state failed --error-has MemoryError\n  tdf ls --campaign grid --param rate=0.5",
		RunE:    func(c *cobra.Command, args []string) error { return l.run(c.Context(), args) },
	}
	l.filter.Flags(c)
	l.paging.Flags(c, 50, "tasks")
	c.Flags().BoolVar(&l.oldest, "oldest-first", false, "oldest tasks first")
	c.Flags().BoolVar(&l.asJSON, "json", false, "one JSON object per line")
	return c
}

func (l *lister) run(ctx context.Context, args []string) error {
	if err := l.paging.Check(); err != nil {
		return err
	}
	if err := l.filter.Check(args, l.paging.Cursor); err != nil {
		return err
	}
	return l.a.WithShards(ctx, func(s *cli.Shards) error {
		chosen, err := l.filter.Resolve(ctx, s, args)
		if err != nil {
			return err
		}
		if l.oldest {
			chosen = chosen.With(func(q *manager.Query) { q.Order = manager.OldestFirst })
		}
		now, err := s.Now(ctx)
		if err != nil {
			return err
		}
		return l.list(ctx, s, chosen, args, l.printer(now))
	})
}

// allPage is the size of a page with --all: a multiple of the number of tasks that a walk reads at once.
const allPage = 900

// list prints one page of tasks. With --all, it prints all pages.
func (l *lister) list(ctx context.Context, s *cli.Shards, chosen admin.Selection, args []string,
	out *taskPrinter,
) error {
	existing := map[string]bool{}
	shown, read, limit := 0, 0, l.paging.Limit
	if l.paging.All {
		limit = allPage
	}
	for cursor := l.paging.Cursor; ; {
		page, err := s.Page(ctx, chosen, cursor, limit)
		if err != nil {
			return err
		}
		if err := out.print(page.Tasks); err != nil {
			return err
		}
		if len(args) > 0 { // reportUnknown needs the map only if the user gave ids
			for _, t := range page.Tasks {
				existing[t.Name()] = true
			}
		}
		shown, read, cursor = shown+len(page.Tasks), read+page.Looked, page.Next
		if cursor == "" || !l.paging.All {
			l.summarize(args, shown, read, cursor)
			if err := l.sayCampaign(ctx, s); err != nil {
				return err
			}
			if cursor != "" {
				return nil
			}
			return cli.ReportUnknown(ctx, l.a, s, args, existing)
		}
	}
}

// summarize prints the number of tasks, and the command that prints the next page.
func (l *lister) summarize(names []string, shown, read int, next string) {
	switch {
	case next != "":
		l.a.Say("%s of %d read; more: %s", format.Tasks(shown), read, cli.NextPage("ls", next))
	case shown == 0 && read == 0 && l.paging.Cursor == "" && !l.filter.Given(names):
		l.a.Say("no tasks in this namespace; open some with tdf open")
	case shown == 0 || read > shown:
		l.a.Say("%s of %d read", format.Tasks(shown), read)
	}
}

// sayCampaign prints whether the campaign of the filter is closed and complete.
func (l *lister) sayCampaign(ctx context.Context, all *cli.Shards) error {
	if l.filter.Group == "" {
		return nil
	}
	s, err := all.GroupStatus(ctx, l.filter.Group)
	if err != nil {
		return err
	}
	l.a.Say("campaign %s is %s", l.filter.Group, campaignText(s))
	return nil
}

func campaignText(s manager.GroupStatus) string {
	text := "closed"
	switch {
	case !s.Closed:
		return "open: more tasks can be opened in it"
	case s.Decided:
		text = "decided: its completion was acted on, so it cannot be extended"
	}
	if n := s.Counts.Unfinished(); n > 0 {
		return text + "; " + format.Tasks(n) + " unfinished"
	}
	return text + "; it is complete"
}

// A taskPrinter prints pages of tasks.
type taskPrinter struct {
	a       *cli.App
	now     time.Time
	asJSON  bool
	printed bool // the heading was printed
}

func (l *lister) printer(now time.Time) *taskPrinter {
	return &taskPrinter{a: l.a, now: now, asJSON: l.asJSON}
}

func (p *taskPrinter) print(tasks []*manager.Task) error {
	if p.asJSON {
		out := bufio.NewWriter(p.a.Stdout)
		for _, t := range tasks {
			if err := cli.JsonLines(out).Encode(t); err != nil {
				return err
			}
		}
		return out.Flush()
	}
	if len(tasks) == 0 {
		return nil
	}
	names := columnNames
	if p.narrow() {
		names = narrowNames
	}
	s := p.a.Table(slices.Clone(names)...)
	for _, t := range tasks {
		all := p.columns(t)
		row := make([]string, len(names))
		for i, name := range names {
			row[i] = all[slices.Index(columnNames, name)]
		}
		s.Row(row...)
	}
	s.Headless, p.printed = p.printed, true
	return s.Write()
}

var (
	columnNames = []string{"id", "state", "campaign", "program", "round", "worker", "age", "exit", "seconds", "input"}
	narrowNames = []string{"id", "state", "worker", "age", "exit", "input"} // the most useful columns
)

// narrow reports whether the terminal is too narrow for all columns.
func (p *taskPrinter) narrow() bool { return p.a.Terminal.Width > 0 && p.a.Terminal.Width < 120 }

func (p *taskPrinter) columns(t *manager.Task) []string {
	r := t.LastRun()
	if r == nil {
		r = new(manager.Round)
	}
	limit := 0
	if p.a.Terminal.Out {
		limit = 40
	}
	return []string{
		t.Name(), stateAt(t, p.now), format.OneLine(t.Group, 0), format.OneLine(t.Program, 0),
		format.Number(t.Round), format.OneLine(r.Worker, 0),
		p.age(t), format.OneLine(r.Exit, 0), format.Seconds(r.RunTime), format.OneLine(t.Label(), limit),
	}
}

// age returns the time for which the task has been in its state.
func (p *taskPrinter) age(t *manager.Task) string {
	if t.Entered.IsZero() {
		return ""
	}
	return format.Span(p.now.Sub(t.Entered))
}

// stateAt returns the same text as stateText. It also marks a running task whose lease has ended, and an open task that
// is not due yet.
func stateAt(t *manager.Task, now time.Time) string {
	switch {
	case t.Stored().LeaseExpired(task.At(now)):
		return format.StateText(t) + " (lease ended)"
	case !t.WaitsForLimit && t.ClaimableFrom.After(now):
		return format.StateText(t) + " (not due)"
	}
	return format.StateText(t)
}
