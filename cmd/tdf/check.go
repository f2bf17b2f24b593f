package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/admin"
)

func newCheck(a *app) *cobra.Command {
	repair, pause := false, time.Duration(0)
	c := &cobra.Command{
		Use: "check", Short: "Look for tasks that are not as they should be, and mend them",
		Long: "Looks at all tasks, beside the work: whether each is in the one list that its state names, whether the server\n" +
			"will look at it in time, and whether its counters make sense. A server mends what it finds, too, a part in each round.\n" +
			"With --repair what is sure is mended at once, and the rest where it is unchanged after --wait.\n" +
			"Exit status 3: something is left.",
		Example: "  tdf check --repair",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if pause < 0 {
				return usage("--wait is from 0 up")
			}
			m, err := a.manager(c.Context())
			if err != nil {
				return err
			}
			defer m.Close()
			findings, err := m.admin().Check(c.Context())
			if err != nil {
				return err
			}
			if !repair {
				return a.tellFindings(findings, proposed)
			}
			if findings, err = a.repair(c.Context(), m, findings, pause); err != nil {
				return err
			}
			return a.tellFindings(findings, remaining)
		},
	}
	c.Flags().BoolVar(&repair, "repair", false, "mend what can be mended")
	c.Flags().DurationVar(&pause, "wait", time.Minute, "how long something has to look wrong, unchanged, before it is mended")
	return c
}

// tellFindings writes a line for each.
func (a *app) tellFindings(findings []admin.Finding, line func(admin.Finding) string) error {
	for _, f := range findings {
		if _, err := fmt.Fprintln(a.stdout, oneLine(line(f), 0)); err != nil {
			return err
		}
	}
	if len(findings) > 0 {
		a.say("left: %s", counted(len(findings), "finding"))
		return errNotWell
	}
	a.say("all tasks are as they should be")
	return nil
}

// proposed says what is wrong, and what would be done about it.
func proposed(f admin.Finding) string {
	putBack := "put back as " + string(f.Repair)
	wrong, mended, _ := strings.Cut(f.Problem, ": ")
	switch {
	case !mendable(f):
		return remaining(f)
	case wrong == putBack && mended == "out of place":
		return fmt.Sprintf("task %d: in no list, or not in the one of its state; --repair would put it back as %s", f.ID, f.Repair)
	case wrong == putBack:
		return fmt.Sprintf("task %d: %s; --repair would put it back as %s", f.ID, mended, f.Repair)
	case mended != "":
		return fmt.Sprintf("task %d: %s; --repair would mend that: %s", f.ID, wrong, mended)
	}
	return fmt.Sprintf("task %d: --repair would mend that: %s", f.ID, f.Problem)
}

// remaining says what is wrong after everything was done about it.
func remaining(f admin.Finding) string {
	if mendable(f) {
		return f.String() + " (not done yet)"
	}
	return f.String() + "; --repair cannot mend that"
}

func mendable(f admin.Finding) bool { return f.Repairable() }

// repair mends what it may, and returns what is left.
func (a *app) repair(ctx context.Context, m *client, findings []admin.Finding, pause time.Duration) ([]admin.Finding, error) {
	var sure, others []admin.Finding
	for _, f := range findings {
		switch {
		case !mendable(f):
		case f.Sure:
			sure = append(sure, f)
		default:
			others = append(others, f)
		}
	}
	if err := a.mend(ctx, m, sure); err != nil {
		return nil, err
	}
	if len(others) > 0 {
		a.say("%s may be moves that are under way: looking again in %v", counted(len(others), "finding"), pause)
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
		now, err := m.admin().Check(ctx)
		if err != nil {
			return nil, err
		}
		if err := a.mend(ctx, m, admin.Unchanged(others, now)); err != nil {
			return nil, err
		}
	}
	if len(findings) == 0 {
		return nil, nil
	}
	return m.admin().Check(ctx)
}

// mend says of each what was done about it.
func (a *app) mend(ctx context.Context, m *client, findings []admin.Finding) error {
	if len(findings) == 0 {
		return nil
	}
	n, err := m.admin().Repair(ctx, findings)
	if err != nil {
		return err
	}
	if n < len(findings) { // which of them is not told: what is left is looked for afterwards
		a.say("mended %d of %s", n, counted(len(findings), "finding"))
		return nil
	}
	for _, f := range findings {
		a.say("mended: %s", oneLine(f.String(), 0))
	}
	return nil
}

// sleep waits, unless it is told to stop.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
