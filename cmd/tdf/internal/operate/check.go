package operate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/format"
)

func Check(a *cli.App) *cobra.Command {
	repair, pause := false, time.Duration(0)
	c := &cobra.Command{
		Use: "check", Short: "Find inconsistent tasks and repair them",
		Long: "Looks for tasks whose data in Redis contradict each other: a task in a wrong list, one that no server\n" +
			"would look at in time, or one whose counters do not agree. Everything may run meanwhile. The server's audit\n" +
			"looks for the same, a few tasks at a time.\n" +
			"With --repair, the command corrects them. A task that may only be on its way from one list to another is\n" +
			"corrected if it looks the same after --wait.\n" +
			"Exit status 3 means that some tasks are still inconsistent.",
		Example: "  tdf check\n  tdf check --repair",
		Args:    cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.WithManager(c.Context(), func(m *cli.Client) error {
				return checkTasks(c.Context(), a, m, repair, pause)
			})
		},
	}
	c.Flags().BoolVar(&repair, "repair", false, "correct the inconsistent tasks")
	cli.SpanVar(c.Flags(), &pause, "wait", time.Minute,
		"`SPAN` after which --repair looks again at tasks that may be on their way")
	return c
}

func checkTasks(ctx context.Context, a *cli.App, m *cli.Client, repair bool, pause time.Duration) error {
	findings, err := m.Admin().Check(ctx)
	if err != nil {
		return err
	}
	if !repair {
		return printFindings(a, findings, beforeRepair)
	}
	if findings, err = repairFindings(ctx, a, m, findings, pause); err != nil {
		return err
	}
	return printFindings(a, findings, afterRepair)
}

// printFindings prints a line for each finding.
func printFindings(a *cli.App, findings []admin.Finding, line func(admin.Finding) string) error {
	for _, f := range findings {
		if _, err := fmt.Fprintln(a.Stdout, format.OneLine(line(f), 0)); err != nil {
			return err
		}
	}
	if len(findings) > 0 {
		a.Say("inconsistent: %s", format.Counted(len(findings), "finding"))
		return cli.ErrProblems
	}
	a.Say("all tasks are consistent")
	return nil
}

// beforeRepair describes a finding, and the repair that --repair would make.
func beforeRepair(f admin.Finding) string {
	putBack := "put back as " + string(f.Repair)
	problem, repair, _ := strings.Cut(f.Problem, ": ")
	switch {
	case !repairable(f):
		return afterRepair(f)
	case problem == putBack && repair == "out of place":
		return fmt.Sprintf("task %d: not in the list of its state; --repair would put it back as %s", f.ID, f.Repair)
	case problem == putBack:
		return fmt.Sprintf("task %d: %s; --repair would put it back as %s", f.ID, repair, f.Repair)
	case repair != "":
		return fmt.Sprintf("task %d: %s; --repair would repair it: %s", f.ID, problem, repair)
	}
	return fmt.Sprintf("task %d: %s; --repair would repair it", f.ID, f.Problem)
}

// afterRepair describes a finding that still exists after a repair.
func afterRepair(f admin.Finding) string {
	if repairable(f) {
		return f.String() + " (not repaired yet)"
	}
	return f.String() + "; --repair cannot repair this"
}

func repairable(f admin.Finding) bool { return f.Repairable() }

// repairFindings repairs findings, and returns the findings that remain. It repairs the sure findings at once. Any
// other finding may be a transition in progress: repairFindings repairs it only if it is unchanged after the pause.
func repairFindings(ctx context.Context, a *cli.App, m *cli.Client, findings []admin.Finding,
	pause time.Duration,
) ([]admin.Finding, error) {
	var sure, others []admin.Finding
	for _, f := range findings {
		switch {
		case !repairable(f):
		case f.Sure:
			sure = append(sure, f)
		default:
			others = append(others, f)
		}
	}
	if err := repairNow(ctx, a, m, sure); err != nil {
		return nil, err
	}
	if len(others) > 0 {
		a.Say("%s may be a transition in progress: checking again in %v", format.Counted(len(others), "finding"), pause)
		if err := cli.Sleep(ctx, pause); err != nil {
			return nil, err
		}
		now, err := m.Admin().Check(ctx)
		if err != nil {
			return nil, err
		}
		if err := repairNow(ctx, a, m, admin.Unchanged(others, now)); err != nil {
			return nil, err
		}
	}
	if len(findings) == 0 {
		return nil, nil
	}
	return m.Admin().Check(ctx)
}

// repairNow repairs findings and prints them.
func repairNow(ctx context.Context, a *cli.App, m *cli.Client, findings []admin.Finding) error {
	if len(findings) == 0 {
		return nil
	}
	n, err := m.Admin().Repair(ctx, findings)
	if err != nil {
		return err
	}
	if n < len(findings) { // Repair does not say which findings remain; the next check does
		a.Say("repaired %d of %s", n, format.Counted(len(findings), "finding"))
		return nil
	}
	for _, f := range findings {
		a.Say("repaired %s", format.OneLine(f.String(), 0))
	}
	return nil
}
