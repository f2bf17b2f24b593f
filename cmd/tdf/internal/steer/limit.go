package steer

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
)

func Limit(a *cli.App) *cobra.Command {
	rate, asJSON := "", false
	c := &cobra.Command{
		Use: "limit [KEY [N|none]]", Short: "Limit how many tasks with a limit key run at once",
		Long: "Sets the limit of a key: at most N tasks of the key run at once, over all workers. --rate limits how " +
			"often a task of the key starts. Both replace\n" +
			"an earlier limit. none removes the limit. Running tasks go on. tdf open --limit-key gives tasks a key. " +
			"Without N and --rate, the command lists the\n" +
			"limits, with the numbers of running and waiting tasks.",
		Example: "  tdf limit database 4\n  tdf limit example.com 2 --rate 10/1s\n  tdf limit database none",
		Args:    cobra.MaximumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 2 || rate != "" {
				return setLimit(c.Context(), a, args, rate)
			}
			return a.WithManager(c.Context(), func(m *cli.Client) error {
				return listLimits(c.Context(), a, m, args, asJSON)
			})
		},
	}
	c.Flags().StringVar(&rate, "rate", "", "`STARTS/TIME` maximum number of starts per time: 10/1s, 600/m, 1/h")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	return c
}

func setLimit(ctx context.Context, a *cli.App, args []string, rate string) error {
	if len(args) == 0 {
		return cli.Usagef("--rate without a key")
	}
	key, remove := args[0], len(args) == 2 && args[1] == "none"
	if err := task.CheckLimitKey(key); err != nil {
		return cli.Usagef("%v", err)
	}
	limit, err := task.ReadLimit(strings.Join(args[1:], ""), rate)
	switch {
	case remove && rate != "":
		return cli.Usagef("none removes the whole limit; leave --rate out")
	case err != nil && !remove:
		return cli.Usagef("%v", err)
	}
	return a.WithManager(ctx, func(m *cli.Client) error {
		if remove {
			if err := m.Limits().Remove(ctx, key); err != nil {
				return err
			}
			a.Say("%s: no limit", format.OneLine(key, 0))
			return nil
		}
		if err := m.Limits().Set(ctx, key, limit); err != nil {
			return err
		}
		a.Say("%s: %s", format.OneLine(key, 0), limit.Text())
		return nil
	})
}

// A limitLine is a line of tdf limit --json.
type limitLine struct {
	Key     string  `json:"key"`
	AtMost  *int    `json:"at_most,omitempty"`
	Starts  int     `json:"starts,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	Running int     `json:"running"`
	Waiting int     `json:"waiting"`
}

func listLimits(ctx context.Context, a *cli.App, m *cli.Client, keys []string, asJSON bool) error {
	all, err := m.Limits().All(ctx)
	if err != nil {
		return err
	}
	t, n := a.Table("key", "limit", "running", "waiting"), 0
	for _, l := range all {
		if len(keys) > 0 && l.Key != keys[0] {
			continue
		}
		n++
		if !asJSON {
			t.Row(format.OneLine(l.Key, 0), l.Text(), format.Number(l.Running), format.Number(l.Waiting))
			continue
		}
		line := limitLine{Key: l.Key, Starts: l.Starts, Seconds: l.Per.Seconds(), Running: l.Running, Waiting: l.Waiting}
		if l.HasNumber() {
			line.AtMost = &l.AtMost
		}
		if err := cli.JsonLines(a.Stdout).Encode(line); err != nil {
			return err
		}
	}
	switch {
	case asJSON:
		return nil
	case n > 0:
		return t.Write()
	case len(keys) > 0:
		a.Say("%s: no limit", format.OneLine(keys[0], 0))
	default:
		a.Say("there are no limits")
	}
	return nil
}
