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

// A postMortem is a call of failures.
type postMortem struct {
	a        *app
	filter   filter
	paging   paging
	forgiven bool
	asJSON   bool
}

func newFailures(a *app) *cobra.Command {
	p := postMortem{a: a}
	c := &cobra.Command{
		Use: "failures [ID…] [FILTER]", Short: "Group failures by what they have in common",
		Long: "Groups the failed rounds of tasks that failed, timed out or expired, archived or not, by how they ended and by the line that\n" +
			"tells most at the end of their stderr, but for numbers, names and the like. A group's ID is what --failure wants: tdf ls, tdf retry.\n" +
			"Workers on which a program fails far more often than on others are named.",
		Example: "  tdf failures --campaign grid",
		RunE:    func(c *cobra.Command, args []string) error { return p.run(c.Context(), args) },
	}
	p.filter.flags(c)
	p.paging.flags(c, 20, "groups")
	c.Flags().BoolVar(&p.forgiven, "forgiven", false, "also the failed rounds of tasks that are open again, run, or succeeded in the end")
	c.Flags().BoolVar(&p.asJSON, "json", false, "a JSON object a line")
	return c
}

func (p *postMortem) run(ctx context.Context, args []string) error {
	if err := p.paging.check(); err != nil {
		return err
	}
	if err := p.filter.check(args, ""); err != nil {
		return err
	}
	m, err := p.a.manager(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	q, err := p.filter.query(ctx, m, args)
	if err != nil {
		return err
	}
	if p.forgiven && len(q.States) == 0 {
		q.States = tdf.States
	}
	found, err := m.failures(ctx, q, p.paging.cursor)
	for p.paging.all && err == nil && found.Next != "" {
		var page admin.Failures
		if page, err = m.failures(ctx, q, found.Next); err == nil {
			found.Merge(page)
		}
	}
	if err != nil {
		return err
	}
	if err := p.print(found); err != nil || found.Next != "" {
		return err
	}
	return p.a.tellMissing(ctx, m, args, nil)
}

func (p *postMortem) print(found admin.Failures) error {
	shown := found.Groups
	if !p.paging.all {
		shown = shown[:min(len(shown), p.paging.limit)]
	}
	if err := p.groups(shown); err != nil {
		return err
	}
	for _, s := range found.Suspects {
		p.a.say("worker %s: %s failed in %d of its last %d rounds there, and in %d of %d elsewhere; tdf drain %s keeps it from more",
			s.Worker, s.Program, s.Failed, s.Rounds, s.OthersFailed, s.OthersRounds, s.Worker)
	}
	n, in := 0, 0
	for _, g := range found.Groups {
		n, in = n+g.Tasks, in+g.Rounds
	}
	p.a.say("%s with %s in %s; looked at %d of %d", tasks(n), counted(in, "failed round"), counted(len(found.Groups), "group"), found.Looked, max(found.Of, int64(found.Looked)))
	if hidden := len(found.Groups) - len(shown); hidden > 0 {
		p.a.say("not shown: %s; --limit %d shows all", counted(hidden, "group"), len(found.Groups))
	}
	if found.Next != "" {
		p.a.say("more: %s", again("failures", found.Next))
	}
	return nil
}

func (p *postMortem) groups(groups []admin.FailureGroup) error {
	if p.asJSON {
		for _, g := range groups {
			if err := jsonLines(p.a.stdout).Encode(g); err != nil {
				return err
			}
		}
		return nil
	}
	if len(groups) == 0 {
		return nil
	}
	if p.a.style.out {
		return p.paragraphs(groups)
	}
	s := p.a.sheet("failure", "tasks", "rounds", "how", "program", "workers", "example", "line")
	for _, g := range groups {
		s.row(g.ID, fmt.Sprint(g.Tasks), fmt.Sprint(g.Rounds), oneLine(g.How, 40), counts(g.Programs), counts(g.Workers),
			fmt.Sprintf("%d/%d", g.Example.ID, g.Example.Round), oneLine(g.Line, 0))
	}
	return s.write()
}

// paragraphs are for people: lines are long, and say most.
func (p *postMortem) paragraphs(groups []admin.FailureGroup) error {
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "%s  %s, %s: %s\n", g.ID, tasks(g.Tasks), counted(g.Rounds, "round"), oneLine(g.How, 0))
		if g.Line != "" {
			fmt.Fprintf(&b, "    %s\n", oneLine(g.Line, 0))
		}
		fmt.Fprintf(&b, "    %s", counts(g.Programs))
		if len(g.Workers) > 0 {
			fmt.Fprintf(&b, " on %s", counts(g.Workers))
		}
		fmt.Fprintf(&b, "; such as task %d, round %d\n", g.Example.ID, g.Example.Round)
	}
	_, err := io.WriteString(p.a.stdout, b.String())
	return err
}

// counts names those with the highest counts.
func counts(of map[string]int) string {
	const most = 2
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), strings.Compare(a, b))
	})
	var parts []string
	for i, name := range names {
		if i == most {
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
