package steer

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
)

func Drain(a *cli.App) *cobra.Command {
	undo := false
	c := &cobra.Command{
		Use: "drain WORKER…", Short: "Stop workers from claiming tasks",
		Long: "Stops workers from claiming tasks. The drain of a worker begins with its next heartbeat. A worker " +
			"sends three heartbeats per lease.\n" +
			"A drained worker finishes its running tasks. To run these tasks on other workers at once, use tdf " +
			"requeue. The worker process keeps running.\n" +
			"The drain lasts until tdf drain --undo, even if the worker restarts.",
		Example: "  tdf drain node-7 && tdf requeue --worker node-7 --elsewhere\n  tdf drain node-7 --undo",
		Args:    cli.SomeArguments("WORKER"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.WithManager(c.Context(), func(m *cli.Client) error {
				return drainWorkers(c.Context(), a, m, args, undo)
			})
		},
	}
	c.Flags().BoolVar(&undo, "undo", false, "end of the drain, so that the workers claim tasks again")
	return c
}

func drainWorkers(ctx context.Context, a *cli.App, m *cli.Client, workers []string, undo bool) error {
	order, result := m.Admin().Drain, "drained"
	if undo {
		order, result = m.Admin().Resume, "no longer drained"
	}
	for _, name := range workers {
		if err := order(ctx, name); err != nil {
			return err
		}
		a.Say("%s: %s", name, result)
	}
	return nil
}
