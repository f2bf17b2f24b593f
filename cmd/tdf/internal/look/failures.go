package look

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// A failureReport holds the flags of tdf failures.
type failureReport struct {
	a        *cli.App
	filter   cli.Filter
	paging   cli.Paging
	forgiven bool
	asJSON   bool
}

func Failures(a *cli.App) *cobra.Command {
	r := failureReport{a: a}
	c := &cobra.Command{
		Use: "failures [CAMPAIGN|ID…] [FILTER]", Short: "Group failures by cause",
		Long: "Groups the failed rounds of tasks that failed, timed out or expired, including archived tasks. The " +
			"rounds of a group ended in the same\n" +
			"way. The last lines of their stderr differ only in numbers, quoted names, addresses and temporary " +
			"paths. To select the tasks of a group\n" +
			"in other commands, give its ID to --failure.\n" +
			"The command also names workers on which a program fails far more often than on others.",
		Example: "  tdf failures grid\n  tdf failures --error-has MemoryError --json",

		RunE: func(c *cobra.Command, args []string) error { return r.run(c.Context(), args) },
	}
	r.filter.Flags(c)
	r.paging.Flags(c, 20, "groups")
	c.Flags().BoolVar(&r.forgiven, "forgiven", false,
		"also failed rounds of tasks that are now open, running, executed or succeeded")
	c.Flags().BoolVar(&r.asJSON, "json", false, "one JSON object per line")
	return c
}

func (r *failureReport) run(ctx context.Context, args []string) error {
	if err := r.paging.Check(); err != nil {
		return err
	}
	names, err := r.filter.CampaignOrTasks(args)
	if err != nil {
		return err
	}
	if err := r.filter.Check(names, ""); err != nil {
		return err
	}
	return r.a.WithShards(ctx, func(s *cli.Shards) error { return r.report(ctx, s, names) })
}

func (r *failureReport) report(ctx context.Context, s *cli.Shards, names []string) error {
	chosen, err := r.filter.Resolve(ctx, s, names)
	if err != nil {
		return err
	}
	if r.forgiven && len(r.filter.States) == 0 {
		chosen = chosen.With(func(q *manager.Query) { q.States = task.States })
	}
	found, err := s.Failures(ctx, chosen, r.paging.Cursor)
	if err != nil {
		return err
	}
	for r.paging.All && found.Next != "" {
		page, err := s.Failures(ctx, chosen, found.Next)
		if err != nil {
			return err
		}
		found.Merge(page)
	}
	if err := r.print(found); err != nil || found.Next != "" {
		return err
	}
	return cli.ReportUnknown(ctx, r.a, s, names, nil)
}

func (r *failureReport) print(found admin.Failures) error {
	shown := found.Groups
	if !r.paging.All {
		shown = shown[:min(len(shown), r.paging.Limit)]
	}
	if err := r.groups(shown); err != nil {
		return err
	}
	for _, s := range found.Suspects {
		r.a.Say("worker %s: program %s failed in %d of its last %d rounds on this worker, and in %d of %d rounds on "+
			"other workers; "+
			"to drain the worker, run tdf drain %s",
			s.Worker, s.Program, s.Failed, s.Rounds, s.OthersFailed, s.OthersRounds, s.Worker)
	}
	n, rounds := 0, 0
	for _, g := range found.Groups {
		n, rounds = n+g.Tasks, rounds+g.Rounds
	}
	r.a.Say("%s with %s in %s; read %d of %s", format.Tasks(n), format.Counted(rounds, "failed round"),
		format.Counted(len(found.Groups), "group"), found.Looked, format.Tasks(max(found.Of, int64(found.Looked))))
	if hidden := len(found.Groups) - len(shown); hidden > 0 {
		r.a.Say("not shown: %s; --limit %d shows all", format.Counted(hidden, "group"), len(found.Groups))
	}
	if found.Next != "" {
		r.a.Say("more: %s", cli.NextPage("failures", found.Next))
	}
	return nil
}

func (r *failureReport) groups(groups []admin.FailureGroup) error {
	if r.asJSON {
		for _, g := range groups {
			if err := cli.JsonLines(r.a.Stdout).Encode(g); err != nil {
				return err
			}
		}
		return nil
	}
	if len(groups) == 0 {
		return nil
	}
	if r.a.Terminal.Out {
		return r.paragraphs(groups)
	}
	t := r.a.Table("failure", "tasks", "rounds", "how", "program", "workers", "example", "line")
	for _, g := range groups {
		t.Row(g.ID, format.Number(g.Tasks), format.Number(g.Rounds), format.OneLine(g.How, 40), topCounts(g.Programs),
			topCounts(g.Workers),
			fmt.Sprintf("%s/%d", g.Example.Name(), g.Example.Round), format.OneLine(g.Line, 0))
	}
	return t.Write()
}

// paragraphs prints each group as a paragraph on a terminal, because the line from stderr is too long for a table.
func (r *failureReport) paragraphs(groups []admin.FailureGroup) error {
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "%s  %s, %s: %s\n", g.ID, format.Tasks(g.Tasks), format.Counted(g.Rounds, "round"),
			format.OneLine(g.How, 0))
		if g.Line != "" {
			fmt.Fprintf(&b, "    %s\n", format.OneLine(g.Line, 0))
		}
		fmt.Fprintf(&b, "    %s", topCounts(g.Programs))
		if len(g.Workers) > 0 {
			fmt.Fprintf(&b, " on %s", topCounts(g.Workers))
		}
		fmt.Fprintf(&b, "; example: task %s, round %d\n", g.Example.Name(), g.Example.Round)
	}
	_, err := io.WriteString(r.a.Stdout, b.String())
	return err
}

// topCounts returns a text with the names that have the highest counts. If there are several names, the text contains
// the counts.
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
		part := format.OneLine(name, 40)
		if len(names) > 1 {
			part += fmt.Sprintf(" %d×", of[name])
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}
