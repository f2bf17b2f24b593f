package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/admin"
)

func newDump(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "dump", Short: "Write all of a namespace to stdout",
		Long: "Writes the namespace as JSON lines: its tasks with all that they printed, and the programs stored in it.\n" +
			"It may be written while work goes on; each task is as it was at one moment.",
		Example: "  tdf dump | gzip > project.dump.gz",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if a.style.out {
				return usage("a dump is not for a terminal; send it to a file: tdf dump > FILE")
			}
			m, err := a.manager(c.Context())
			if err != nil {
				return err
			}
			defer m.Close()
			done, err := m.admin().Dump(c.Context(), a.stdout)
			if err == nil {
				a.say("dumped %s and %s", counted(done.Tasks, "task"), counted(done.Programs, "program"))
			}
			return err
		},
	}
}

func newLoad(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "load [FILE|-]", Short: "Load what dump wrote into an empty namespace",
		Long: "Loads a dump into a namespace that has no tasks, of whatever name. Tasks keep their ids and stand where they stood;\n" +
			"those that ran are lost when their leases are over, and run again as max_losses says.\n" +
			"A file is checked before anything is written. A load that was broken off goes on when it is made again.",
		Example: "  gunzip < project.dump.gz | tdf --namespace copy load",
		Args:    atMostOne("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			in, done, err := a.dumpFile(c.Context(), args)
			if err != nil {
				return err
			}
			defer done()
			return a.load(c.Context(), in)
		},
	}
}

// dumpFile opens the file that an argument names, or stdin.
func (a *app) dumpFile(ctx context.Context, args []string) (in io.Reader, done func(), err error) {
	if len(args) == 0 || args[0] == "-" {
		if isTerminal(a.stdin) {
			return nil, nil, usage("which dump? Name a file, or send it to stdin: tdf load < FILE")
		}
		return stream(ctx, a.stdin), func() {}, nil
	}
	file, err := openFile(ctx, args[0])
	if err != nil {
		return nil, nil, usage("%v", err)
	}
	return stream(ctx, file), func() { file.Close() }, nil
}

func (a *app) load(ctx context.Context, in io.Reader) error {
	m, err := a.manager(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	done, err := m.admin().Load(ctx, in)
	if errors.As(err, new(*admin.DumpError)) || errors.Is(err, admin.ErrOccupied) {
		return usage("%v", err)
	}
	if err != nil {
		return err
	}
	a.say("loaded %s and %s", counted(done.Tasks, "task"), counted(done.Programs, "program"))
	if done.There > 0 {
		a.say("%d of the tasks were there already, from a load that was broken off", done.There)
	}
	return nil
}
