package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/program"
)

func newPush(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "push DIR",
		Short: "Store a program's directory in Redis",
		Long: `Store a program's directory, which has run.sh at its top, in the project's own Redis, up to 64 MiB when packed.
Prints the program's name, which has a hash of its content, and its source: what tdf open takes as --program and
--source. Left out are .git, and what a .tdfignore in the directory names: a pattern a line, such as *.o,
results/ or data/*.csv.`,
		Example: "  tdf push ./simulate",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("tdf push needs one argument, the program's directory, and got %d", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.push(c.Context(), args[0]) },
	}
}

func (a *app) push(ctx context.Context, dir string) error {
	packed, err := program.Pack(dir)
	if err != nil {
		return usage("%v", err)
	}
	m, err := a.manager(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := a.store(ctx, m, packed); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s\t%s\n", packed.Name, packed.Source)
	return err
}

// store brings a packed program to Redis, and says so.
func (a *app) store(ctx context.Context, m *client, packed program.Packed) error {
	p, err := program.PushPacked(ctx, m.Manager, packed)
	if err == nil {
		a.say("program %s is stored: %s, %s", p.Program, counted(int64(p.Files), "file"), counted(p.Bytes, "byte"))
	}
	return err
}
