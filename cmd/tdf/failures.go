package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
)

// A failureReport holds the flags of tdf failures.
type failureReport struct {
	a        *app
	filter   filter
	paging   paging
	forgiven bool
	asJSON   bool
}

func newFailures(a *app) *cobra.Command {
	r := failureReport{a: a}
	c := &cobra.Command{
		Use: "failures [ID…] [FILTER]", Short: "Group failures by cause",
		Long: "Groups the failed rounds of tasks that failed, timed out or expired, including archived tasks. The rounds of a group ended in the same\n" +
			"way. The last lines of their stderr differ only in numbers, quoted names, addresses and temporary paths. To select the tasks of a group\n" +
			"in other commands, give its ID to --failure.\n" +
			"The command also names workers on which a program fails far more often than on others.",
		Example: "  tdf failures --campaign grid",
		RunE:    func(c *cobra.Command, args []string) error { return r.run(c.Context(), args) },
	}
	r.filter.flags(c)
	r.paging.flags(c, 20, "groups")
	c.Flags().BoolVar(&r.forgiven, "forgiven", false, "also failed rounds of tasks that are now open, running, executed or succeeded")
	c.Flags().BoolVar(&r.asJSON, "json", false, "one JSON object per line")
	return c
}

func (r *failureReport) run(ctx context.Context, args []string) error {
	if err := r.paging.check(); err != nil {
		return err
	}
	if err := r.filter.check(args, ""); err != nil {
		return err
	}
	return r.a.withManager(ctx, func(m *client) error { return r.report(ctx, m, args) })
}

func (r *failureReport) report(ctx context.Context, m *client, args []string) error {
	q, err := r.filter.query(ctx, m, args)
	if err != nil {
		return err
	}
	if r.forgiven && len(q.States) == 0 {
		q.States = tdf.States
	}
	found, err := m.admin().Failures(ctx, q, r.paging.cursor)
	for r.paging.all && err == nil && found.Next != "" {
		var page admin.Failures
		if page, err = m.admin().Failures(ctx, q, found.Next); err == nil {
			found.Merge(page)
		}
	}
	if err != nil {
		return err
	}
	if err := r.print(found); err != nil || found.Next != "" {
		return err
	}
	return r.a.reportUnknown(ctx, m, args, nil)
}

func (r *failureReport) print(found admin.Failures) error {
	shown := found.Groups
	if !r.paging.all {
		shown = shown[:min(len(shown), r.paging.limit)]
	}
	if err := r.groups(shown); err != nil {
		return err
	}
	for _, s := range found.Suspects {
		r.a.say("worker %s: program %s failed in %d of its last %d rounds on this worker, and in %d of %d rounds on other workers; "+
			"to drain the worker, run tdf drain %s",
			s.Worker, s.Program, s.Failed, s.Rounds, s.OthersFailed, s.OthersRounds, s.Worker)
	}
	n, rounds := 0, 0
	for _, g := range found.Groups {
		n, rounds = n+g.Tasks, rounds+g.Rounds
	}
	r.a.say("%s with %s in %s; read %d of %s", tasks(n), counted(rounds, "failed round"), counted(len(found.Groups), "group"), found.Looked, tasks(max(found.Of, int64(found.Looked))))
	if hidden := len(found.Groups) - len(shown); hidden > 0 {
		r.a.say("not shown: %s; --limit %d shows all", counted(hidden, "group"), len(found.Groups))
	}
	if found.Next != "" {
		r.a.say("more: %s", nextPage("failures", found.Next))
	}
	return nil
}

func (r *failureReport) groups(groups []admin.FailureGroup) error {
	if r.asJSON {
		for _, g := range groups {
			if err := jsonLines(r.a.stdout).Encode(g); err != nil {
				return err
			}
		}
		return nil
	}
	if len(groups) == 0 {
		return nil
	}
	if r.a.terminal.out {
		return r.paragraphs(groups)
	}
	t := r.a.table("failure", "tasks", "rounds", "how", "program", "workers", "example", "line")
	for _, g := range groups {
		t.row(g.ID, number(g.Tasks), number(g.Rounds), oneLine(g.How, 40), topCounts(g.Programs), topCounts(g.Workers),
			fmt.Sprintf("%d/%d", g.Example.ID, g.Example.Round), oneLine(g.Line, 0))
	}
	return t.write()
}

// paragraphs prints each group as a paragraph on a terminal, because the line from stderr is too long for a table.
func (r *failureReport) paragraphs(groups []admin.FailureGroup) error {
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "%s  %s, %s: %s\n", g.ID, tasks(g.Tasks), counted(g.Rounds, "round"), oneLine(g.How, 0))
		if g.Line != "" {
			fmt.Fprintf(&b, "    %s\n", oneLine(g.Line, 0))
		}
		fmt.Fprintf(&b, "    %s", topCounts(g.Programs))
		if len(g.Workers) > 0 {
			fmt.Fprintf(&b, " on %s", topCounts(g.Workers))
		}
		fmt.Fprintf(&b, "; example: task %d, round %d\n", g.Example.ID, g.Example.Round)
	}
	_, err := io.WriteString(r.a.stdout, b.String())
	return err
}

// topCounts returns a text with the names that have the highest counts. If there are several names, the text contains the counts.
func topCounts(of map[string]int) string {
	const limit = 2
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), strings.Compare(a, b))
	})
	var parts []string
	for i, name := range names {
		if i == limit {
			parts = append(parts, fmt.Sprintf("… (%d)", len(names)))
			break
		}
		part := oneLine(name, 40)
		if len(names) > 1 {
			part += fmt.Sprintf(" %d×", of[name])
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}
