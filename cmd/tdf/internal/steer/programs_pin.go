package steer

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
)

func newProgramsPin(a *cli.App) *cobra.Command {
	return pinCommand(a, "pin", "Keep stored programs that no task names",
		"Makes the server keep programs, even if no task names them. PROGRAM is a name, a source, or at least 8 hex digits of the SHA-256.",
		"pinned", program.Pin)
}

func newProgramsUnpin(a *cli.App) *cobra.Command {
	return pinCommand(a, "unpin", "End the effect of tdf programs pin",
		"Ends the effect of tdf programs pin. If no task names a program, the server removes it a week after its last use.",
		"no longer pinned", program.Unpin)
}

func pinCommand(a *cli.App, name, short, long, done string, act func(context.Context, *manager.Manager, ...string) error) *cobra.Command {
	c := &cobra.Command{
		Use: name + " PROGRAM…", Short: short, Long: long,
		Example:           "  tdf programs " + name + " simulate-1a2b3c4d",
		Args:              cli.SomeArguments("PROGRAM"),
		ValidArgsFunction: a.CompletePrograms,
		RunE: func(c *cobra.Command, args []string) error {
			return a.WithManager(c.Context(), func(m *cli.Client) error {
				stored, err := program.List(c.Context(), m.Manager)
				if err != nil {
					return err
				}
				sums, err := namedPrograms(stored, args)
				if err == nil {
					err = act(c.Context(), m.Manager, sums...)
				}
				if err == nil {
					a.Say("%s: %s", done, cli.Counted(len(sums), "program"))
				}
				return err
			})
		},
	}
	a.CompleteValues(c)
	return c
}
