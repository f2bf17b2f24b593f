package steer

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/task"
)

func Close(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "close CAMPAIGN", Short: "Close a campaign, so that it can be complete",
		Long: "Closes a campaign: no more tasks can be opened in it, except with tdf open --extend. Tasks that wait " +
			"for the campaign run when all of its\n" +
			"tasks are finished. tdf open closes its own campaigns.",
		Example: "  tdf close night\n  tdf --namespace lab close night/run-2",
		Args:    cli.ExactlyOne("CAMPAIGN"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.WithShards(c.Context(), func(s *cli.Shards) error {
				err := s.CloseGroup(c.Context(), args[0])
				if errors.Is(err, task.ErrGroupEmpty) {
					return cli.UnknownCampaign(args[0])
				}
				if err != nil {
					return err
				}
				a.Say("campaign %s: closed", args[0])
				return nil
			})
		},
	}
}
