package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
)

func newClose(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "close CAMPAIGN", Short: "Close a campaign, so that it can be complete",
		Long: "Closes a campaign: no more tasks can be opened in it, except with tdf open --extend. Tasks that wait for the campaign run when all of its\n" +
			"tasks are finished. tdf open closes its own campaigns.",
		Example:           "  tdf close night",
		Args:              exactlyOne("CAMPAIGN"),
		ValidArgsFunction: a.completeCampaign,
		RunE: func(c *cobra.Command, args []string) error {
			return a.withManager(c.Context(), func(m *client) error {
				err := m.CloseGroup(c.Context(), args[0])
				if errors.Is(err, tdf.ErrGroupEmpty) {
					return unknownCampaign(args[0])
				}
				if err == nil {
					a.say("campaign %s: closed", args[0])
				}
				return err
			})
		},
	}
}

func unknownCampaign(name string) error {
	return usage("unknown campaign %q: no task of this namespace belongs to it", name)
}
