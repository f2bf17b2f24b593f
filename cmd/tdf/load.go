package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/admin"
)

func newLoad(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "load [FILE|-]", Short: "Load a dump into a namespace without tasks",
		Long: "Loads a dump into a namespace without tasks. The namespace may have another name than the dumped one. Tasks keep their ids and states.\n" +
			"A running task is lost when its lease ends. It runs again if max_losses allows it. Settings, pauses and limits that the namespace already\n" +
			"has stay as they are.\n" +
			"The command checks the whole file before it writes to Redis. Repeat an interrupted load to continue it.",
		Example: "  gunzip < project.dump.gz | tdf --namespace copy load",
		Args:    atMostOne("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			in, done, err := a.dumpFile(c.Context(), args)
			if err != nil {
				return err
			}
			defer done()
			return a.withManager(c.Context(), func(m *client) error { return a.load(c.Context(), m, in) })
		},
	}
}

// dumpFile opens the file that the arguments name, or stdin.
func (a *app) dumpFile(ctx context.Context, args []string) (in io.Reader, done func(), err error) {
	if len(args) == 0 || args[0] == "-" {
		if isTerminal(a.stdin) {
			return nil, nil, usage("read dump: stdin is a terminal; use tdf load FILE")
		}
		return stream(ctx, a.stdin), func() {}, nil
	}
	file, err := openFile(ctx, args[0])
	if err != nil {
		return nil, nil, usage("%v", err)
	}
	return stream(ctx, file), func() { file.Close() }, nil
}

func (a *app) load(ctx context.Context, m *client, in io.Reader) error {
	done, err := m.admin().Load(ctx, in)
	refused := errors.As(err, new(*admin.DumpError)) || errors.Is(err, admin.ErrOccupied)
	if refused && done == (admin.Loaded{}) {
		return usage("%v", err)
	}
	if err != nil {
		return partlyError{err}
	}
	a.say("loaded %s", dumpedText(done.Dumped))
	if done.Kept > 0 {
		a.say("not loaded: %s, because the namespace has others, or a campaign has no tasks", counted(done.Kept, "value"))
	}
	if done.There > 0 {
		a.say("an earlier, interrupted load had already loaded %d of the tasks", done.There)
	}
	return nil
}
