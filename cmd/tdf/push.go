package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/program"
)

func newPush(a *app) *cobra.Command {
	pin := false
	c := &cobra.Command{
		Use:   "push DIR",
		Short: "Store a program in Redis",
		Long: `Stores a program in the Redis of the project. A program is a directory with run.sh at its top. The packed program has at most 64 MiB.
The command prints the name and the source of the program. Give them to tdf open as --program and --source. The name contains a hash of the
content. The command leaves out .git, and all files that match a pattern in the file .tdfignore of the directory. This file contains one
pattern per line, such as *.o, results/ or data/*.csv. If no task names the program, the server removes it a week after its last use, unless it is
pinned.`,
		Example: "  tdf push ./simulate",
		Args:    exactlyOne("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			packed, err := program.Pack(args[0])
			if err != nil {
				return usage("%v", err)
			}
			return a.withManager(c.Context(), func(m *client) error { return a.push(c.Context(), m, packed, pin) })
		},
	}
	c.Flags().BoolVar(&pin, "pin", false, "storage without a time limit, even if no task names the program")
	return c
}

// push stores a packed program, pins it if asked, and prints its name and source.
func (a *app) push(ctx context.Context, m *client, packed program.Packed, pin bool) error {
	if err := a.store(ctx, m, packed); err != nil {
		return err
	}
	if pin {
		if err := program.Pin(ctx, m.Manager, tdf.StoredProgram(packed.Source)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(a.stdout, "%s\t%s\n", packed.Name, packed.Source)
	return err
}

// store stores a packed program in Redis.
func (a *app) store(ctx context.Context, m *client, packed program.Packed) error {
	p, err := program.PushPacked(ctx, m.Manager, packed)
	if err == nil {
		a.say("stored program %s: %s, %s", p.Program, counted(p.Files, "file"), size(p.Bytes))
	}
	return err
}
