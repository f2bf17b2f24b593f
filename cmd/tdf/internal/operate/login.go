package operate

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/admin"
)

func Login(a *cli.App) *cobra.Command {
	token := ""
	c := &cobra.Command{
		Use: "login", Short: "Print a link that logs in to the dashboard",
		Long: "Prints a link to the dashboard of tdf up or tdf serve. It logs in one browser, once, within a day, with " +
			"the rights of a token: that of tdf up, or the only token of an operator.",
		Example: "  tdf login\n  tdf login --token lab",
		Args:    cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.WithManager(c.Context(), func(m *cli.Client) error { return login(c.Context(), a, m, token) })
		},
	}
	c.Flags().StringVar(&token, "token", "", "`NAME` of the token whose rights the browser gets")
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
	if token == "" {
		token, err = usualToken(ctx, m.Admin())
	}
	if err != nil {
		return err
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

// usualToken returns the token of tdf up, or the only token of an operator.
func usualToken(ctx context.Context, a *admin.Admin) (string, error) {
	all, err := a.Tokens(ctx)
	if err != nil {
		return "", err
	}
	var names []string
	for _, t := range all {
		if t.Name == upToken {
			return upToken, nil
		}
		if t.Role == access.Operator {
			names = append(names, t.Name)
		}
	}
	switch len(names) {
	case 0:
		return "", cli.Usagef("no operator has a token: add one with tdf token add NAME --role operator, or name " +
			"another token with --token")
	case 1:
		return names[0], nil
	}
	return "", cli.Usagef("several operators have a token: name one with --token, such as %s", names[0])
}
