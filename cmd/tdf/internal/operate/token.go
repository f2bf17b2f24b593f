package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/jsonview"
	"github.com/tdf-framework/tdf/internal/task"
)

func Token(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "token", Short: "Add, rotate, list or remove tokens",
		Long: "A token is a secret text that lets a program use the namespace without access to Redis. Its role " +
			"says what the program may do:\n" + rolesText(),
		Args: cli.NoArguments,
		RunE: func(*cobra.Command, []string) error { return cli.Usagef("want tdf token add, rotate, ls or rm") },
	}
	for _, sub := range []*cobra.Command{tokenAdd(a), tokenRotate(a), tokenList(a), tokenRemove(a)} {
		cli.CompleteValues(sub)
		c.AddCommand(sub)
	}
	return c
}

func rolesText() string {
	var b strings.Builder
	for _, role := range access.Roles() {
		fmt.Fprintf(&b, "\n  %-10s %s", role, access.Role(role).Rights().Text)
	}
	return b.String()
}

func tokenAdd(a *cli.App) *cobra.Command {
	var t access.Token
	role, expires := "", ""
	c := &cobra.Command{
		Use: "add NAME --role ROLE", Short: "Add a token, and print it once",
		Long: "Prints a new token to stdout. Redis holds only a digest of the token, so no command can print it " +
			"again. The roles:\n" + rolesText(),
		Example: "  tdf token add ci --role submitter --expires 30d\n" +
			"  tdf token add lab --role worker --queue gpu --queue crawl",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			t.Name, t.Role = args[0], access.Role(role)
			life, err := cli.ParseSpanFlag("expires", expires)
			if err != nil {
				return err
			}
			if err := t.Check(); err != nil {
				return cli.Usagef("%v", err)
			}
			return addToken(c.Context(), a, t, life)
		},
	}
	c.Flags().StringVar(&role, "role", "", "`ROLE` of the token: "+strings.Join(access.Roles(), ", "))
	c.Flags().StringArrayVar(&t.Queues, "queue", nil,
		"`QUEUE` whose tasks the token may open or claim (repeatable; without it, all queues)")
	c.Flags().StringVar(&expires, "expires", "inf", "`SPAN` after which the token expires, such as 30d")
	return c
}

func addToken(ctx context.Context, a *cli.App, t access.Token, life task.Seconds) error {
	return a.WithManager(ctx, func(m *cli.Client) error {
		now, err := m.RedisTime(ctx)
		if err != nil {
			return err
		}
		t.Expires = now.Add(life).Std()
		text, err := m.Admin().AddToken(ctx, t)
		if text == "" {
			return err
		}
		a.Say("%s: %s; keep the token, because it is shown only now", t.Name, t.Role)
		_, printed := fmt.Fprintln(a.Stdout, text)
		return cmp.Or(err, printed)
	})
}

func tokenRotate(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "rotate NAME", Short: "Give a token a new secret text, and print it once",
		Long: "Prints the new text of a token to stdout. The old text is refused from then on. The token keeps its " +
			"role, its queues, its expiry and its tasks.",
		Example: "  tdf token rotate ci\n  tdf token rotate ci >ci.token",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.WithManager(c.Context(), func(m *cli.Client) error {
				t, text, err := m.Admin().RotateToken(c.Context(), args[0])
				if err != nil {
					return err
				}
				a.Say("%s: %s; the old text is refused from now on", t.Name, t.Role)
				_, err = fmt.Fprintln(a.Stdout, text)
				return err
			})
		},
	}
}

func tokenList(a *cli.App) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "ls", Short: "List the tokens, but not their secret texts",
		Example: "  tdf token ls\n  tdf token ls --json",
		Args:    cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.WithManager(c.Context(), func(m *cli.Client) error {
				return listTokens(c.Context(), a, m, asJSON)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	return c
}

func listTokens(ctx context.Context, a *cli.App, m *cli.Client, asJSON bool) error {
	all, err := m.Admin().Tokens(ctx)
	if err != nil {
		return err
	}
	t := a.Table("name", "role", "queues", "created", "expires", "last use")
	for _, token := range all {
		if asJSON {
			if err := cli.JsonLines(a.Stdout).Encode(jsonview.Of(token)); err != nil {
				return err
			}
			continue
		}
		t.Row(token.Name, string(token.Role), strings.Join(token.Queues, ", "), cli.Clock(token.Created),
			cli.Clock(token.Expires), cli.Clock(token.LastUse))
	}
	switch {
	case asJSON:
		return nil
	case len(all) == 0:
		a.Say("there are no tokens")
		return nil
	}
	return t.Write()
}

func tokenRemove(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME…", Short: "Revoke tokens at once",
		Example: "  tdf token rm ci\n  tdf token rm ci lab",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, names []string) error {
			return a.WithManager(c.Context(), func(m *cli.Client) error {
				for _, name := range slices.Compact(names) {
					if err := m.Admin().RemoveToken(c.Context(), name); err != nil {
						return err
					}
					a.Say("removed token %s", name)
				}
				return nil
			})
		},
	}
}
