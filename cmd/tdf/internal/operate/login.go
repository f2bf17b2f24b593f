package operate

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/access"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
)

func Login(a *cli.App) *cobra.Command {
	token := ""
	c := &cobra.Command{
		Use: "login", Short: "Print a link that logs in to the dashboard",
		Long: "Prints a link to the dashboard of tdf up or tdf serve. It logs in one browser, once, within a day, with " +
			"the rights of a token.",
		Example: "  tdf login\n  tdf login --token lab",
		Args:    cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.WithManager(c.Context(), func(m *cli.Client) error { return login(c.Context(), a, m, token) })
		},
	}
	c.Flags().StringVar(&token, "token", upToken, "`NAME` of the token whose rights the browser gets")
	return c
}

func login(ctx context.Context, a *cli.App, m *cli.Client, token string) error {
	page, err := m.CampaignPage(ctx, "")
	if err != nil {
		return err
	}
	if page == "" {
		return cli.Usagef("no process serves a dashboard of this namespace for this machine: start one with tdf up " +
			"or tdf serve")
	}
	link, err := loginAddress(ctx, m.Admin(), page, token)
	if errors.Is(err, access.ErrDenied) {
		return cli.Usagef("no token is named %q: name one of tdf token ls with --token", token)
	}
	if err != nil {
		return err
	}
	a.Say("logs in one browser, once, within a day:")
	_, err = fmt.Fprintln(a.Stdout, link)
	return err
}
