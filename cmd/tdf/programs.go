package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/program"
)

func newPrograms(a *app) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "programs", Short: "List the programs stored in Redis, and remove some",
		Long: "List the programs that are stored in the namespace's Redis, with the number of tasks that name each. All tasks are looked at: a million\n" +
			"take some seconds.",
		Example: "  tdf programs rm --unused",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			m, err := a.manager(c.Context())
			if err != nil {
				return err
			}
			defer m.Close()
			return a.listPrograms(c.Context(), m, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "a JSON object a line")
	remove := newProgramsRemove(a)
	a.completeValues(remove)
	c.AddCommand(remove)
	return c
}

// A programJSON is a stored program as --json writes it.
type programJSON struct {
	Source     string   `json:"source"`
	Bytes      int64    `json:"bytes"`
	Names      []string `json:"names"` // at most 3
	Unfinished int64    `json:"unfinished_tasks"`
	Tasks      int64    `json:"tasks"`
}

func (a *app) listPrograms(ctx context.Context, m *client, asJSON bool) error {
	stored, err := program.List(ctx, m.Manager)
	if err != nil {
		return err
	}
	if len(stored) == 0 {
		a.say("no program is stored in this namespace: tdf push, or tdf open --program DIR, stores one")
		return nil
	}
	uses, err := program.Uses(ctx, m.Manager)
	if err != nil {
		return err
	}
	s := a.sheet("name", "source", "bytes", "unfinished", "tasks")
	for _, p := range stored {
		use := uses[p.SHA256]
		if asJSON {
			line := programJSON{redisSource + p.SHA256, p.Bytes, append([]string{}, use.Names...), use.Unfinished, use.Tasks}
			if err := jsonLines(a.stdout).Encode(line); err != nil {
				return err
			}
			continue
		}
		s.row(strings.Join(use.Names, ", "), redisSource+p.SHA256, count(p.Bytes), count(use.Unfinished), count(use.Tasks))
	}
	if asJSON {
		return nil
	}
	return s.write()
}

// A removal is a call of programs rm.
type removal struct {
	a                   *app
	unused, yes, dryRun bool
}

func newProgramsRemove(a *app) *cobra.Command {
	r := removal{a: a}
	c := &cobra.Command{
		Use: "rm [PROGRAM…]", Short: "Remove stored programs that no unfinished task names",
		Long: "Remove programs from Redis: by source, by SHA-256 or the beginning of it, or by name. One that an open, running or executed task names is\n" +
			"refused. Finished tasks cannot be retried without their program; the same directory stored again makes up for that.",
		Example:           "  tdf programs rm simulate-1a2b3c4d",
		ValidArgsFunction: a.completePrograms,
		RunE:              func(c *cobra.Command, args []string) error { return r.run(c.Context(), args) },
	}
	c.Flags().BoolVar(&r.unused, "unused", false, "all programs that no task names")
	c.Flags().BoolVarP(&r.yes, "yes", "y", false, "do not ask")
	c.Flags().BoolVar(&r.dryRun, "dry-run", false, "only print which programs it would be")
	return c
}

func (r *removal) run(ctx context.Context, args []string) error {
	if r.unused == (len(args) > 0) {
		return usage("which programs? Name some, or give --unused")
	}
	m, err := r.a.manager(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	stored, err := program.List(ctx, m.Manager)
	if err != nil {
		return err
	}
	var sums []string
	if r.unused {
		sums, err = unusedPrograms(ctx, m, stored)
	} else {
		sums, err = namedPrograms(stored, args)
	}
	if err != nil {
		return err
	}
	if r.dryRun || len(sums) == 0 {
		return r.list(sums)
	}
	r.a.say("programs to remove: %d", len(sums))
	if err := (&hand{a: r.a, yes: r.yes, question: "remove"}).confirm(ctx); err != nil {
		return err
	}
	err = program.Remove(ctx, m.Manager, sums...)
	if used := new(program.UsedError); errors.As(err, &used) {
		r.a.say("%v", used)
		r.a.say("nothing was removed")
		return errNotWell
	}
	if err == nil {
		r.a.say("removed: %d", len(sums))
	}
	return err
}

func (r *removal) list(sums []string) error {
	for _, sum := range sums {
		if _, err := fmt.Fprintln(r.a.stdout, printable(redisSource+sum)); err != nil {
			return err
		}
	}
	if len(sums) == 0 {
		r.a.say("there is no such program: nothing was removed")
	}
	return nil
}

func unusedPrograms(ctx context.Context, m *client, stored []program.Stored) ([]string, error) {
	uses, err := program.Uses(ctx, m.Manager)
	var sums []string
	for _, p := range stored {
		if uses[p.SHA256].Tasks == 0 {
			sums = append(sums, p.SHA256)
		}
	}
	return sums, err
}

// Programs are named by source, by the beginning of the SHA-256, or by a name that ends with that.
const (
	redisSource = "redis:"
	leastPrefix = 8 // hex digits, as the names of packed programs have
)

func namedPrograms(stored []program.Stored, names []string) ([]string, error) {
	var sums []string
	for _, name := range names {
		prefix := strings.TrimPrefix(name[strings.LastIndexByte(name, '-')+1:], redisSource)
		var found []string
		for _, p := range stored {
			if len(prefix) >= leastPrefix && strings.HasPrefix(p.SHA256, prefix) {
				found = append(found, p.SHA256)
			}
		}
		switch {
		case len(prefix) < leastPrefix:
			return nil, usage("%q is not a program: want its source, its name, or %d hex digits of its SHA-256", name, leastPrefix)
		case len(found) == 0:
			return nil, usage("there is no stored program %q: tdf programs lists them", name)
		case len(found) > 1:
			return nil, usage("%q is the beginning of %d programs: give more digits", name, len(found))
		}
		sums = append(sums, found...)
	}
	return sums, nil
}
