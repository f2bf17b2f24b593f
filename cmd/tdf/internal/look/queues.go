package look

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
)

func Queues(a *cli.App) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "queues", Short: "List queues and count their tasks",
		Long: "Lists the queues that have tasks, and those that are paused, in the order of their names, with the " +
			"number of their tasks in each state.\n" +
			"WAIT is how long the oldest task that workers may claim has waited. The queue default has the tasks " +
			"without a queue.",
		Example: "  tdf queues\n  tdf queues --json",
		Args:    cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.WithManager(c.Context(), func(m *cli.Client) error {
				return listQueues(c.Context(), a, m, asJSON)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	return c
}

func listQueues(ctx context.Context, a *cli.App, m *cli.Client, asJSON bool) error {
	queues, err := m.Admin().Queues(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		lines := cli.JsonLines(a.Stdout)
		for _, q := range queues {
			if err := lines.Encode(q); err != nil {
				return err
			}
		}
		return nil
	}
	if len(queues) == 0 {
		a.Say("no queue has tasks or is paused")
		return nil
	}
	t := a.Table(slices.Concat([]string{"queue"}, stateColumns(), []string{"wait", "remarks"})...)
	for _, q := range queues {
		wait, remarks := "", ""
		if q.Waited > 0 {
			wait = format.Span(q.Waited)
		}
		if q.Paused {
			remarks = "paused"
		}
		t.Row(slices.Concat([]string{format.OneLine(q.Queue, 0)}, stateCells(q.Tasks), []string{wait, remarks})...)
	}
	return t.Write()
}
