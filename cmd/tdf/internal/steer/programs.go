package steer

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/jsonview"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
)

func Programs(a *cli.App) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "programs", Short: "List, pin or remove stored programs",
		Long: "Lists the programs that are stored in Redis, and the number of tasks that use each program. The " +
			"command reads all tasks.\n" +
			"This takes some seconds for a million tasks. If no task names a program, the server removes it a week " +
			"after its last use, unless it is pinned.",
		Example: "  tdf programs\n  tdf programs --json",
		Args:    cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.WithManager(c.Context(), func(m *cli.Client) error {
				return listPrograms(c.Context(), a, m, asJSON)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	remove := newProgramsRemove(a)
	cli.CompleteValues(remove)
	c.AddCommand(remove, newProgramsPin(a), newProgramsUnpin(a))
	return c
}

// A programJSON is the JSON form of a stored program.
type programJSON struct {
	Source     string   `json:"source"`
	Bytes      int64    `json:"bytes"`
	Names      []string `json:"names"` // at most 3 names
	Unfinished int64    `json:"unfinished_tasks"`
	Tasks      int64    `json:"tasks"`

	LastUse time.Time `json:"last_use,omitzero"`
	Pinned  bool      `json:"pinned,omitempty"`
}

// MarshalJSON writes the time as in docs/tdf.md, "JSON".
func (p programJSON) MarshalJSON() ([]byte, error) { return jsonview.Marshal(p) }

func listPrograms(ctx context.Context, a *cli.App, m *cli.Client, asJSON bool) error {
	stored, err := program.List(ctx, m.Manager)
	if err != nil {
		return err
	}
	if len(stored) == 0 {
		a.Say("no programs in this namespace; store one with tdf push or tdf open --program DIR")
		return nil
	}
	uses, err := program.Uses(ctx, m.Manager)
	if err != nil {
		return err
	}
	t := a.Table("name", "source", "bytes", "unfinished", "tasks", "last use")
	for _, p := range stored {
		use := uses[p.SHA256]
		if asJSON {
			line := programJSON{
				cli.RedisSource + p.SHA256, p.Bytes, append([]string{}, use.Names...), use.Unfinished,
				use.Tasks, p.LastUse, p.Pinned,
			}
			if err := cli.JsonLines(a.Stdout).Encode(line); err != nil {
				return err
			}
			continue
		}
		t.Row(strings.Join(use.Names, ", "), cli.RedisSource+p.SHA256, format.Number(p.Bytes),
			format.Number(use.Unfinished), format.Number(use.Tasks), lastUse(p))
	}
	if asJSON {
		return nil
	}
	return t.Write()
}

func lastUse(p program.Stored) string {
	if p.Pinned {
		return "pinned"
	}
	return cli.Clock(p.LastUse)
}

func newProgramsPin(a *cli.App) *cobra.Command {
	return pinCommand(a, "pin", "Keep stored programs that no task names",
		"Makes the server keep programs, even if no task names them. PROGRAM is a name, a source, or at least 8 hex "+
			"digits of the SHA-256.",
		"pinned", program.Pin)
}

func newProgramsUnpin(a *cli.App) *cobra.Command {
	return pinCommand(a, "unpin", "End the effect of tdf programs pin",
		"Ends the effect of tdf programs pin. If no task names a program, the server removes it a week after its "+
			"last use.",
		"no longer pinned", program.Unpin)
}

func pinCommand(a *cli.App, name, short, long, done string, act func(context.Context, *manager.Manager,
	...string) error,
) *cobra.Command {
	c := &cobra.Command{
		Use: name + " PROGRAM…", Short: short, Long: long,
		Example: "  tdf programs " + name + " simulate-1a2b3c4d\n" +
			"  tdf programs " + name + " simulate-1a2b3c4d plot-5e6f7a8b",
		Args: cli.SomeArguments("PROGRAM"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.WithManager(c.Context(), func(m *cli.Client) error {
				stored, err := program.List(c.Context(), m.Manager)
				if err != nil {
					return err
				}
				sums, err := namedPrograms(stored, args)
				if err != nil {
					return err
				}
				if err := act(c.Context(), m.Manager, sums...); err != nil {
					return err
				}
				a.Say("%s: %s", done, format.Counted(len(sums), "program"))
				return nil
			})
		},
	}
	cli.CompleteValues(c)
	return c
}
