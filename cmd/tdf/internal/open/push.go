package open

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/program"
)

func Push(a *cli.App) *cobra.Command {
	pin := false
	c := &cobra.Command{
		Use:   "push DIR",
		Short: "Store a program in Redis",
		Long: `Stores a program in the Redis of the project. A program is a directory with run.sh at its top. The packed program has at most 64 MiB.
The command prints the name and the source of the program. Give them to tdf open as --program and --source. The name
contains a hash of the content. The command leaves out .git, and all files that match a pattern in the file
.tdfignore of the directory. This file contains one pattern per line, such as *.o, results/ or data/*.csv. If no
task names the program, the server removes it a week after its last use, unless it is pinned.`,
		Example: "  tdf push ./simulate\n  tdf push ./simulate | xargs tdf open --input 7 --program",
		Args:    cli.ExactlyOne("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			packed, err := program.Pack(a.Path(args[0]))
			if err != nil {
				return cli.Usagef("%v", err)
			}
			return a.WithManager(c.Context(), func(m *cli.Client) error {
				return pushProgram(c.Context(), a, m, packed, pin)
			})
		},
	}
	c.Flags().BoolVar(&pin, "pin", false, "storage without a time limit, even if no task names the program")
	return c
}

// pushProgram stores a packed program, pins it if asked, and prints its name and source.
func pushProgram(ctx context.Context, a *cli.App, m *cli.Client, packed program.Packed, pin bool) error {
	if err := cli.StoreProgram(ctx, m, packed, a.Say); err != nil {
		return err
	}
	if pin {
		if err := program.Pin(ctx, m.Manager, task.StoredProgram(packed.Source)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(a.Stdout, "%s\t%s\n", packed.Name, packed.Source)
	return err
}
