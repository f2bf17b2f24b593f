package look

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
)

func Explain(a *cli.App) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "explain ID", Short: "Explain what blocks a task and how to fix it",
		Long: "Checks everything that the task needs in order to finish, and suggests a fix for each check that " +
			"blocks it. Exit status 3 means\n" +
			"that a check blocks the task. If the source is an http address, the command requests it from this " +
			"machine. A worker may get another answer.",
		Example: "  tdf explain 17\n  tdf explain 17 --json",
		Args:    cli.ExactlyOne("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.WithTask(c.Context(), args[0], func(m *cli.Client, id int64) error {
				return explainTask(c.Context(), a, m, id, asJSON)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return c
}

func explainTask(ctx context.Context, a *cli.App, m *cli.Client, id int64, asJSON bool) error {
	e, err := m.Admin().Explain(ctx, id)
	if errors.Is(err, task.ErrNoTask) {
		err = noTask(ctx, a, m, id)
	}
	if err != nil {
		return err
	}
	for i := range e.Checks {
		f := &e.Checks[i].Fix
		f.Text = cli.WithCommands(*f, m.TaskName(id))
	}
	if asJSON {
		err = cli.JsonLines(a.Stdout).Encode(e)
	} else {
		err = printChecks(a, e)
	}
	if err != nil || !e.Blocked() {
		return err
	}
	return cli.ErrProblems
}

// printChecks prints each check with its state. It prints the fix of a check on the next line.
func printChecks(a *cli.App, e admin.Explanation) error {
	var b strings.Builder
	state := string(e.State)
	if e.Outcome != "" && e.Outcome != state {
		state += " (" + e.Outcome + ")"
	}
	fmt.Fprintf(&b, "task %d: %s, round %d", e.ID, format.OneLine(state, 0), e.Round)
	if blockers := blockedBy(e); len(blockers) > 0 {
		fmt.Fprintf(&b, "; blocked by: %s", strings.Join(blockers, ", "))
	}
	fmt.Fprintln(&b)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, c := range e.Checks {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", strings.ToUpper(string(c.State)), c.Name, format.OneLine(c.Text, 0))
		if c.Fix.Text != "" {
			fmt.Fprintf(t, "  \t\tfix: %s\n", format.OneLine(c.Fix.Text, 0))
		}
	}
	t.Flush()
	_, err := io.WriteString(a.Stdout, b.String())
	return err
}

// blockedBy returns the names of the checks that block the task.
func blockedBy(e admin.Explanation) []string {
	var names []string
	for _, c := range e.Checks {
		if c.State == admin.Blocked {
			names = append(names, c.Name)
		}
	}
	return names
}
