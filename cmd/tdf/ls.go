package main

import (
	"bufio"
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/manager"
)

// A lister holds the flags of tdf ls.
type lister struct {
	a      *app
	filter filter
	paging paging
	asJSON bool
	oldest bool
}

func newLs(a *app) *cobra.Command {
	l := lister{a: a}
	c := &cobra.Command{
		Use: "ls [ID…] [FILTER]", Short: "List tasks",
		Long: "Lists tasks, the newest first. Tasks of one campaign are sorted by id, others by the time at which they entered their states.\n" +
			"The state of an open task says whether it waits for other tasks or for a limit, or is not due yet. With --campaign, a message says\n" +
			"whether the campaign is closed and complete. For filters other than state, campaign and time, the command reads one task after the\n" +
			"other. It stops after about half a second, and prints the command that continues the search.",
		Example: "  tdf ls --state failed --error-has MemoryError",
		RunE:    func(c *cobra.Command, args []string) error { return l.run(c.Context(), args) },
	}
	l.filter.flags(c)
	l.paging.flags(c, 50, "tasks")
	c.Flags().BoolVar(&l.oldest, "oldest-first", false, "oldest tasks first")
	c.Flags().BoolVar(&l.asJSON, "json", false, "one JSON object per line")
	return c
}

func (l *lister) run(ctx context.Context, args []string) error {
	if err := l.paging.check(); err != nil {
		return err
	}
	if err := l.filter.check(args, l.paging.cursor); err != nil {
		return err
	}
	return l.a.withManager(ctx, func(m *client) error {
		q, err := l.filter.query(ctx, m, args)
		if err != nil {
			return err
		}
		if l.oldest {
			q.Order = manager.OldestFirst
		}
		now, err := m.Now(ctx)
		if err != nil {
			return err
		}
		return l.list(ctx, m, q, args, l.printer(now))
	})
}

// allPage is the size of a page with --all.
const allPage = 1000

// list prints one page of tasks. With --all, it prints all pages.
func (l *lister) list(ctx context.Context, m *client, q manager.Query, args []string, out *taskPrinter) error {
	existing := map[int64]bool{}
	shown, read, limit := 0, 0, l.paging.limit
	if l.paging.all {
		limit = allPage
	}
	for cursor := l.paging.cursor; ; {
		page, err := m.Page(ctx, q, cursor, limit)
		if err != nil {
			return err
		}
		if err := out.print(page.Tasks); err != nil {
			return err
		}
		if len(args) > 0 { // reportUnknown needs the map only if the user gave ids
			for _, t := range page.Tasks {
				existing[t.ID] = true
			}
		}
		shown, read, cursor = shown+len(page.Tasks), read+page.Looked, page.Next
		if cursor == "" || !l.paging.all {
			l.summarize(q, shown, read, cursor)
			if err := l.sayCampaign(ctx, m); err != nil {
				return err
			}
			if cursor != "" {
				return nil
			}
			return l.a.reportUnknown(ctx, m, args, existing)
		}
	}
}

// summarize prints the number of tasks, and the command that prints the next page.
func (l *lister) summarize(q manager.Query, shown, read int, next string) {
	switch {
	case next != "":
		l.a.say("%s of %d read; more: %s", tasks(shown), read, nextPage("ls", next))
	case shown == 0 && read == 0 && l.paging.cursor == "" && !l.filter.given(nil) && len(q.IDs) == 0:
		l.a.say("no tasks in this namespace; open some with tdf open")
	case shown == 0 || read > shown:
		l.a.say("%s of %d read", tasks(shown), read)
	}
}

// sayCampaign prints whether the campaign of the filter is closed and complete.
func (l *lister) sayCampaign(ctx context.Context, m *client) error {
	if l.filter.Group == "" {
		return nil
	}
	s, err := m.GroupStatus(ctx, l.filter.Group)
	if err == nil {
		l.a.say("campaign %s is %s", l.filter.Group, campaignText(s))
	}
	return err
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
		return text + "; " + tasks(n) + " unfinished"
	}
	return text + "; it is complete"
}

func tasks[N int | int64](n N) string { return counted(n, "task") }

// A taskPrinter prints pages of tasks.
type taskPrinter struct {
	a       *app
	now     time.Time
	asJSON  bool
	printed bool // the heading was printed
}

func (l *lister) printer(now time.Time) *taskPrinter {
	return &taskPrinter{a: l.a, now: now, asJSON: l.asJSON}
}

func (p *taskPrinter) print(tasks []*manager.Task) error {
	if p.asJSON {
		out := bufio.NewWriter(p.a.stdout)
		for _, t := range tasks {
			if err := jsonLines(out).Encode(t); err != nil {
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
	s := p.a.table(slices.Clone(names)...)
	for _, t := range tasks {
		all := p.columns(t)
		row := make([]string, len(names))
		for i, name := range names {
			row[i] = all[slices.Index(columnNames, name)]
		}
		s.row(row...)
	}
	s.headless, p.printed = p.printed, true
	return s.write()
}

var (
	columnNames = []string{"id", "state", "campaign", "program", "round", "worker", "age", "exit", "seconds", "input"}
	narrowNames = []string{"id", "state", "worker", "age", "exit", "input"} // the most useful columns
)

// narrow reports whether the terminal is too narrow for all columns.
func (p *taskPrinter) narrow() bool { return p.a.terminal.width > 0 && p.a.terminal.width < 120 }

func (p *taskPrinter) columns(t *manager.Task) []string {
	r := t.LastRun()
	if r == nil {
		r = new(manager.Round)
	}
	limit := 0
	if p.a.terminal.out {
		limit = 40
	}
	return []string{
		number(t.ID), stateAt(t, p.now), oneLine(t.Group, 0), oneLine(t.Program, 0), number(t.Round), oneLine(r.Worker, 0),
		p.age(t), oneLine(r.Exit, 0), seconds(r.RunTime), oneLine(t.Input, limit),
	}
}

// age returns the time for which the task has been in its state.
func (p *taskPrinter) age(t *manager.Task) string {
	if t.Entered.IsZero() {
		return ""
	}
	return span(p.now.Sub(t.Entered))
}

// stateAt returns the same text as stateText. It also marks a running task whose lease has ended, and an open task that is not
// due yet.
func stateAt(t *manager.Task, now time.Time) string {
	switch {
	case t.Stored().LeaseExpired(tdf.At(now)):
		return stateText(t) + " (lease ended)"
	case !t.WaitsForLimit && t.ClaimableFrom.After(now):
		return stateText(t) + " (not due)"
	}
	return stateText(t)
}

// stateText returns the state of a task. If the outcome differs from the state, the text contains the outcome, too. It marks
// tasks that wait for others or for a limit.
func stateText(t *manager.Task) string {
	switch {
	case t.Waits:
		return string(t.State) + " (waits for tasks)"
	case t.WaitsForLimit:
		return string(t.State) + " (waits for a limit)"
	}
	if t.Outcome == "" || t.Outcome == string(t.State) {
		return oneLine(string(t.State), 0)
	}
	return oneLine(string(t.State)+" ("+t.Outcome+")", 0)
}
