package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/manager"
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
			findings, err := m.Check(c.Context())
			if err == nil && repair {
				findings, err = a.repair(c.Context(), m, findings, pause)
			}
			if err != nil {
				return err
			}
			return a.tellFindings(findings)
		},
	}
	c.Flags().BoolVar(&repair, "repair", false, "mend what can be mended")
	c.Flags().DurationVar(&pause, "wait", time.Minute, "how long something has to look wrong, unchanged, before it is mended")
	return c
}

// tellFindings writes a line for each.
func (a *app) tellFindings(findings []manager.Finding) error {
	for _, f := range findings {
		fmt.Fprintln(a.stdout, oneLine(f.String(), 0))
	}
	if len(findings) > 0 {
		a.say("%d findings are left", len(findings))
		return errNotWell
	}
	a.say("all tasks are as they should be")
	return nil
}

// repair mends what it may, and returns what is left.
func (a *app) repair(ctx context.Context, m *manager.Manager, findings []manager.Finding, pause time.Duration) ([]manager.Finding, error) {
	var sure, others []manager.Finding
	for _, f := range findings {
		if f.Sure {
			sure = append(sure, f)
		} else {
			others = append(others, f)
		}
	}
	if err := a.mend(ctx, m, sure); err != nil {
		return nil, err
	}
	if len(others) > 0 {
		a.say("%d other findings may be moves that are under way; looking again in %v", len(others), pause)
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
		now, err := m.Check(ctx)
		if err != nil {
			return nil, err
		}
		if err := a.mend(ctx, m, manager.Unchanged(others, now)); err != nil {
			return nil, err
		}
	}
	if len(findings) == 0 {
		return nil, nil
	}
	return m.Check(ctx)
}

// mend says of each what is done about it.
func (a *app) mend(ctx context.Context, m *manager.Manager, findings []manager.Finding) error {
	if len(findings) == 0 {
		return nil
	}
	for _, f := range findings {
		a.say("%s", oneLine(f.String(), 0))
	}
	n, err := m.Repair(ctx, findings)
	a.say("mended %d of these %d", n, len(findings))
	return err
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
