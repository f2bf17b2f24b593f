package operate

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
)

func Load(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "load [FILE|-]", Short: "Load a dump into a namespace without tasks",
		Long: "Loads a dump into a namespace without tasks. The namespace may have another name than the dumped " +
			"one. Tasks keep their ids and states.\n" +
			"A running task is lost when its lease ends. It runs again if max_losses allows it. Settings, pauses " +
			"and limits that the namespace already\n" +
			"has stay as they are.\n" +
			"The command checks the whole file before it writes to Redis. Repeat an interrupted load to continue it.",
		Example: "  gunzip < project.dump.gz | tdf --namespace copy load\n  tdf --namespace copy load project.dump",
		Args:    cli.AtMostOne("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			in, done, err := dumpFile(c.Context(), a, args)
			if err != nil {
				return err
			}
			defer done()
			return a.WithManager(c.Context(), func(m *cli.Client) error { return loadDump(c.Context(), a, m, in) })
		},
	}
}

// dumpFile opens the file that the arguments name, or stdin.
func dumpFile(ctx context.Context, a *cli.App, args []string) (in io.Reader, done func(), err error) {
	if len(args) == 0 || args[0] == "-" {
		if cli.IsTerminal(a.Stdin) {
			return nil, nil, cli.Usagef("read dump: stdin is a terminal; use tdf load FILE")
		}
		return cli.Stream(ctx, a.Stdin), func() {}, nil
	}
	file, err := a.OpenFile(ctx, args[0])
	if err != nil {
		return nil, nil, cli.Usagef("%v", err)
	}
	return cli.Stream(ctx, file), func() { file.Close() }, nil
}

func loadDump(ctx context.Context, a *cli.App, m *cli.Client, in io.Reader) error {
	done, err := m.Admin().Load(ctx, in)
	refused := errors.As(err, new(*admin.DumpError)) || errors.Is(err, admin.ErrOccupied)
	if refused && done == (admin.Loaded{}) {
		return cli.Usagef("%v", err)
	}
	if err != nil {
		return cli.PartlyError{Err: err}
	}
	a.Say("loaded %s", dumpedText(done.Dumped))
	if done.Kept > 0 {
		a.Say("not loaded: %s, because the namespace has others, or a campaign has no tasks",
			format.Counted(done.Kept, "value"))
	}
	if done.There > 0 {
		a.Say("an earlier, interrupted load had already loaded %d of the tasks", done.There)
	}
	return nil
}
