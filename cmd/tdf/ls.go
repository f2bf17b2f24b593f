package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
)

// A listing is a call of ls.
type listing struct {
	a      *app
	filter filter
	paging paging
	asJSON bool
	oldest bool
}

// paging is how much of a long answer is shown, and from where.
type paging struct {
	limit  int
	cursor string
	all    bool
}

func newLs(a *app) *cobra.Command {
	l := listing{a: a}
	c := &cobra.Command{
		Use: "ls [ID…] [FILTER]", Short: "List tasks",
		Long: "Lists tasks, the newest first: of a campaign by id, else by when they entered their states. What the lists in Redis do not tell (all but state,\n" +
			"campaign and time) is found by looking at one task after the other, for half a second or so: what that finds is told, and how to go on.",
		Example: "  tdf ls --state failed --error-has MemoryError",
		RunE:    func(c *cobra.Command, args []string) error { return l.run(c.Context(), args) },
	}
	l.filter.flags(c)
	l.paging.flags(c, 50, "tasks")
	c.Flags().BoolVar(&l.oldest, "oldest-first", false, "begin with the oldest")
	c.Flags().BoolVar(&l.asJSON, "json", false, "a JSON object a line")
	return c
}

func (p *paging) flags(c *cobra.Command, limit int, what string) {
	c.Flags().IntVar(&p.limit, "limit", limit, "at most `N` "+what)
	c.Flags().StringVar(&p.cursor, "cursor", "", "go on where an earlier call ended that told this `CURSOR`")
	c.Flags().BoolVar(&p.all, "all", false, "all there are, however long it takes")
}

func (p *paging) check() error {
	if p.limit < 1 {
		return usage("--limit %d has to be from 1 up", p.limit)
	}
	return nil
}

// atOnce is how many tasks are read at a time where all are asked for.
const atOnce = 1000

func (l *listing) run(ctx context.Context, args []string) error {
	if err := l.paging.check(); err != nil {
		return err
	}
	if err := l.filter.check(args, l.paging.cursor); err != nil {
		return err
	}
	m, err := l.a.manager(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	q, err := l.filter.query(ctx, m, args)
	if err != nil {
		return err
	}
	q.OldestFirst = l.oldest
	now, err := m.now(ctx)
	if err != nil {
		return err
	}
	return l.list(ctx, m, q, args, l.printer(now))
}

// list prints one page, or all of them.
func (l *listing) list(ctx context.Context, m *client, q taskQuery, args []string, out *taskPrinter) error {
	found := map[int64]bool{}
	shown, looked, most := 0, 0, l.paging.limit
	if l.paging.all {
		most = atOnce
	}
	for after := l.paging.cursor; ; {
		page, err := m.find(ctx, q, after, most)
		if err != nil {
			return err
		}
		if err := out.print(page.Tasks); err != nil {
			return err
		}
		for _, t := range page.Tasks {
			found[t.ID] = len(args) > 0
		}
		shown, looked, after = shown+len(page.Tasks), looked+page.Looked, page.Next
		if after == "" || !l.paging.all {
			l.conclude(q, shown, looked, after)
			if after != "" {
				return nil
			}
			return l.a.tellMissing(ctx, m, args, found)
		}
	}
}

// conclude says how much that was, and how to go on.
func (l *listing) conclude(q taskQuery, shown, looked int, next string) {
	switch {
	case next != "":
		l.a.say("%s; looked at %d; more: %s", tasks(shown), looked, again("ls", next))
	case shown == 0 && looked == 0 && l.paging.cursor == "" && !l.filter.names(nil) && len(q.IDs) == 0:
		l.a.say("there are no tasks in this namespace: tdf open makes some")
	case shown == 0 || looked > shown:
		l.a.say("%s; looked at %d", tasks(shown), looked)
	}
}

// again is the command that goes on.
func again(command, cursor string) string {
	return fmt.Sprintf("tdf %s … --cursor %s (or --all)", command, cursor)
}

func tasks(n int) string { return counted(n, "task") }

// A taskPrinter prints tasks, page by page.
type taskPrinter struct {
	a      *app
	now    tdf.Time
	asJSON bool
	headed bool // the heading is there
}

func (l *listing) printer(now tdf.Time) *taskPrinter {
	return &taskPrinter{a: l.a, now: now, asJSON: l.asJSON}
}

func (p *taskPrinter) print(tasks []*tdf.Task) error {
	if p.asJSON {
		out := bufio.NewWriter(p.a.stdout)
		for _, t := range tasks {
			if err := jsonLines(out).Encode(taskToJSON(t)); err != nil {
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
	s := p.a.sheet(slices.Clone(names)...)
	for _, t := range tasks {
		all := p.columns(t)
		row := make([]string, len(names))
		for i, name := range names {
			row[i] = all[slices.Index(columnNames, name)]
		}
		s.row(row...)
	}
	s.headless, p.headed = p.headed, true
	return s.write()
}

var (
	columnNames = []string{"id", "state", "campaign", "program", "round", "worker", "age", "exit", "seconds", "input"}
	narrowNames = []string{"id", "state", "worker", "age", "exit", "input"} // that tell most
)

// narrow: the terminal has no room for all columns.
func (p *taskPrinter) narrow() bool { return p.a.style.width > 0 && p.a.style.width < 120 }

func (p *taskPrinter) columns(t *tdf.Task) []string {
	r := t.Rounds.At(t.LastRun())
	most := 0
	if p.a.style.out {
		most = 40
	}
	return []string{
		strconv.FormatInt(t.ID, 10), stateAt(t, p.now), oneLine(t.Group, 0), oneLine(t.Program, 0), strconv.Itoa(t.Round), oneLine(r.Worker, 0),
		p.age(t), oneLine(r.Exit, 0), secondsText(r.Seconds), oneLine(t.Input, most),
	}
}

// age is how long the task has been in its state.
func (p *taskPrinter) age(t *tdf.Task) string {
	entered := t.Current().Entered[t.State]
	if entered == 0 {
		return ""
	}
	return ago(p.now.Sub(entered))
}

// stateAt is stateText, and says of a running task that its worker has stopped renewing the lease.
func stateAt(t *tdf.Task, now tdf.Time) string {
	if t.LeaseExpired(now) {
		return stateText(t) + " (lease over)"
	}
	return stateText(t)
}

// stateText is the state, with the outcome where that is not the same.
func stateText(t *tdf.Task) string {
	if t.Outcome == "" || t.Outcome == string(t.State) {
		return oneLine(string(t.State), 0)
	}
	return oneLine(string(t.State)+" ("+t.Outcome+")", 0)
}

// secondsText writes a span with the digits that count; "" for none.
func secondsText(s tdf.Seconds) string {
	switch {
	case s <= 0:
		return ""
	case s < 10:
		return strconv.FormatFloat(float64(s), 'f', 2, 64)
	}
	return strconv.FormatFloat(float64(s), 'f', 0, 64)
}
