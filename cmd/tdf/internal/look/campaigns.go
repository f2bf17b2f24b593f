package look

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

func Campaigns(a *cli.App) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "campaigns [PREFIX]", Short: "List campaigns and count their tasks",
		Long: "Lists the campaigns that have tasks, in the order of their names, with the number of their tasks in " +
			"each state. With PREFIX, it lists\n" +
			"only campaigns whose names begin with it.",
		Example: "  tdf campaigns\n  tdf campaigns night/",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			prefix := ""
			if len(args) > 0 {
				prefix = args[0]
			}
			return a.WithShards(c.Context(), func(s *cli.Shards) error {
				return listCampaigns(c.Context(), a, s, prefix, asJSON)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	return c
}

// A campaignLine is a line of tdf campaigns --json.
type campaignLine struct {
	Campaign string               `json:"campaign"`
	Tasks    map[task.State]int64 `json:"tasks"`
	Closed   bool                 `json:"closed"`
	Complete bool                 `json:"complete"`
}

func listCampaigns(ctx context.Context, a *cli.App, s *cli.Shards, prefix string, asJSON bool) error {
	t, n := a.Table(slices.Concat([]string{"campaign"}, stateColumns(), []string{"remarks"})...), 0
	for g, err := range s.AllGroups(ctx, prefix) {
		if err != nil {
			return err
		}
		n++
		if asJSON {
			if err := cli.JsonLines(a.Stdout).Encode(campaignLine{
				g.Name, g.Counts, g.Closed,
				g.Complete(),
			}); err != nil {
				return err
			}
			continue
		}
		t.Row(slices.Concat([]string{format.OneLine(g.Name, 0)}, stateCells(g.Counts),
			[]string{markText(g.GroupStatus)})...)
	}
	switch {
	case n == 0 && !asJSON:
		a.Say("no campaigns")
		return nil
	case asJSON:
		return nil
	}
	return t.Write()
}

// stateColumns returns the headings of a table's columns with the number of tasks in each state.
func stateColumns() (columns []string) {
	for _, state := range task.States {
		columns = append(columns, string(state))
	}
	return columns
}

func stateCells(counts task.Counts) (cells []string) {
	for _, state := range task.States {
		cells = append(cells, format.Number(counts[state]))
	}
	return cells
}

func markText(s manager.GroupStatus) string {
	switch {
	case s.Complete():
		return "complete"
	case s.Closed:
		return "closed"
	}
	return ""
}
