package steer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/program"
)

// A programRemoval holds the flags of tdf programs rm.
type programRemoval struct {
	a                   *cli.App
	unused, yes, dryRun bool
}

func newProgramsRemove(a *cli.App) *cobra.Command {
	r := programRemoval{a: a}
	c := &cobra.Command{
		Use: "rm [PROGRAM…]", Short: "Remove stored programs",
		Long: "Removes programs from Redis. PROGRAM is a name, a source, or at least 8 hex digits of the SHA-256. " +
			"If an open, running or executed\n" +
			"task needs one of the programs, nothing is removed. Finished tasks cannot be retried without their " +
			"program. To restore a\n" +
			"program, push the same directory again.",
		Example: "  tdf programs rm simulate-1a2b3c4d\n  tdf programs rm --unused",
		RunE:    func(c *cobra.Command, args []string) error { return r.run(c.Context(), args) },
	}
	c.Flags().BoolVar(&r.unused, "unused", false, "every program that no task uses")
	c.Flags().BoolVarP(&r.yes, "yes", "y", false, "yes as the answer to every question")
	c.Flags().BoolVar(&r.dryRun, "dry-run", false, "list of the affected sources, without any change")
	return c
}

func (r *programRemoval) run(ctx context.Context, args []string) error {
	switch {
	case r.unused && len(args) > 0:
		return cli.Usagef("--unused with programs: want one of the two")
	case !r.unused && len(args) == 0:
		return cli.Usagef("no programs selected: want programs, or --unused")
	}
	return r.a.WithManager(ctx, func(m *cli.Client) error {
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
		return r.remove(ctx, m, sums)
	})
}

// remove asks for confirmation and removes the programs.
func (r *programRemoval) remove(ctx context.Context, m *cli.Client, sums []string) error {
	r.a.Say("programs rm: %s selected", format.Counted(len(sums), "program"))
	if err := r.a.Confirm(ctx, "programs rm", r.yes); err != nil {
		return err
	}
	err := program.Remove(ctx, m.Manager, sums...)
	if used := new(program.UsedError); errors.As(err, &used) {
		r.a.Say("nothing was removed: %v", used)
		return cli.ErrProblems
	}
	if err != nil {
		return err
	}
	r.a.Say("removed: %d", len(sums))
	return nil
}

func (r *programRemoval) list(sums []string) error {
	for _, sum := range sums {
		if _, err := fmt.Fprintln(r.a.Stdout, format.Printable(cli.RedisSource+sum)); err != nil {
			return err
		}
	}
	if len(sums) == 0 {
		r.a.Say("nothing was removed: every program is used")
	}
	return nil
}

func unusedPrograms(ctx context.Context, m *cli.Client, stored []program.Stored) ([]string, error) {
	uses, err := program.Uses(ctx, m.Manager)
	var sums []string
	for _, p := range stored {
		if use := uses[p.SHA256]; use.Tasks == 0 && use.Later == "" {
			sums = append(sums, p.SHA256)
		}
	}
	return sums, err
}

// minDigits is the minimum number of hex digits with which an argument names a program. The name of a packed program
// ends with 8 hex digits of its SHA-256.
const minDigits = 8

// namedPrograms returns the SHA-256 of each named program.
func namedPrograms(stored []program.Stored, names []string) ([]string, error) {
	var sums []string
	for _, name := range names {
		digits := strings.TrimPrefix(name[strings.LastIndexByte(name, '-')+1:], cli.RedisSource)
		var found []string
		for _, p := range stored {
			if len(digits) >= minDigits && strings.HasPrefix(p.SHA256, digits) {
				found = append(found, p.SHA256)
			}
		}
		switch {
		case len(digits) < minDigits:
			return nil, cli.Usagef("invalid program %q: want a source, a name, or %d hex digits of the SHA-256", name,
				minDigits)
		case len(found) == 0:
			return nil, cli.Usagef(
				"unknown program %q: not stored in this namespace; tdf programs lists the stored programs", name)
		case len(found) > 1:
			return nil, cli.Usagef("ambiguous program %q: %d programs match; give more digits", name, len(found))
		}
		sums = append(sums, found...)
	}
	return sums, nil
}
