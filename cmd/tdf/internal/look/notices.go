package look

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/format"
)

func Notices(a *cli.App) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "notices", Short: "List the notices by webhook and mail",
		Long: "Lists the last 1,000 notices, the newest ones first, and whether they were delivered. Servers write " +
			"notices if section [notify] of their\n" +
			"configuration names a webhook or a mail address.",
		Example: "  tdf notices\n  tdf notices --json",
		Args:    cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.WithManager(c.Context(), func(m *cli.Client) error {
				return listNotices(c.Context(), a, m, asJSON)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	return c
}

func listNotices(ctx context.Context, a *cli.App, m *cli.Client, asJSON bool) error {
	all, err := m.Admin().Notices(ctx, admin.MaxNotices)
	t := a.Table("notice", "at", "text", "delivery")
	for i, n := range all {
		if asJSON {
			if err := cli.JsonLines(a.Stdout).Encode(&all[i]); err != nil {
				return err
			}
			continue
		}
		t.Row(strconv.FormatInt(n.ID, 10), n.At.Local().Format(time.DateTime), format.OneLine(n.Text, 0),
			format.OneLine(n.Delivery(), 0))
	}
	if asJSON {
		return err
	}
	if len(all) == 0 && err == nil {
		a.Say("no notices")
		return nil
	}
	return errors.Join(t.Write(), err)
}
