package operate

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/task"
)

func Settings(a *cli.App) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "settings [NAME=VALUE…]", Short: "Show or change the settings of the namespace",
		Long: "Changes settings of the namespace, and lists all settings. Redis holds them, and all managers and " +
			"workers obey them:\n" +
			"max_tasks (a number, or inf) is the largest number of stored tasks. high_water (above 0 and up to 1) " +
			"is a part of Redis's\n" +
			"maxmemory. While Redis uses more, new tasks wait. original_workers (yes or no) keeps tasks from " +
			"workers of the original TDF\n" +
			"that cannot fetch their programs. rounds_open (yes or no) lets the programs of tasks open further tasks.",
		Example: "  tdf settings\n  tdf settings max_tasks=1000000 high_water=0.9",
		RunE: func(c *cobra.Command, args []string) error {
			changes, err := parseSettings(args)
			if err != nil {
				return err
			}
			return a.WithManager(c.Context(), func(m *cli.Client) error {
				return changeSettings(c.Context(), a, m, changes, asJSON)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	return c
}

// parseSettings reads arguments NAME=VALUE. It checks all of them before the command changes a setting.
func parseSettings(args []string) ([]admin.Setting, error) {
	var changes []admin.Setting
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, cli.Usagef("invalid setting %q: want NAME=VALUE, such as max_tasks=1000000", arg)
		}
		settings := task.DefaultSettings()
		if err := settings.Change(name, value); err != nil {
			return nil, cli.Usagef("%v", err)
		}
		changes = append(changes, admin.Setting{Name: name, Value: value})
	}
	return changes, nil
}

func changeSettings(ctx context.Context, a *cli.App, m *cli.Client, changes []admin.Setting, asJSON bool) error {
	for _, s := range changes {
		if err := m.Admin().ChangeSetting(ctx, s.Name, s.Value); err != nil {
			return err
		}
	}
	all, err := m.Admin().Settings(ctx)
	if err != nil {
		return err
	}
	t := a.Table("setting", "value", "default")
	for _, s := range all {
		if asJSON {
			if err := cli.JsonLines(a.Stdout).Encode(s); err != nil {
				return err
			}
			continue
		}
		t.Row(s.Name, s.Value, s.Default)
	}
	if asJSON {
		return nil
	}
	return t.Write()
}
