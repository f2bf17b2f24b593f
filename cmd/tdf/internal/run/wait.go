package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/selection"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// Wait returns the command that waits for tasks.
func Wait(a *cli.App) *cobra.Command {
	some := cli.SomeArguments("ID")
	c := &cobra.Command{
		Use: "wait ID…", Short: "Wait until tasks have finished",
		Long: "Waits until tasks have finished. The exit status of one task is that of its command, as for tdf run; that " +
			"of several tasks\nsays how many failed.",
		Example: "  tdf wait 17\n  tdf wait 17 18 && ./merge",
		Args:    func(c *cobra.Command, args []string) error { return cli.Exit(some(c, args)) },
		RunE: func(c *cobra.Command, args []string) error {
			return cli.Exit(a.WithShards(c.Context(), func(s *cli.Shards) error { return wait(c.Context(), a, s, args) }))
		},
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return cli.Exit(cli.FlagError(c, err)) })
	return c
}

// State returns the command that prints the state of a task.
func State(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "state ID", Short: "Print the state of a task, as one word",
		Long: "Prints one word: open, running or executed; or how the task has finished: succeeded, failed, timed_out, " +
			"expired or cancelled.",
		Example: "  tdf state 17\n  tdf state 17 | grep -qx succeeded",
		Args:    cli.ExactlyOne("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.WithTask(c.Context(), args[0], func(m *cli.Client, id int64) error {
				t, err := m.Get(c.Context(), id)
				if err != nil {
					return err
				}
				word := t.Outcome
				if word == "" {
					word = string(t.State)
				}
				_, err = fmt.Fprintln(a.Stdout, word)
				return err
			})
		},
	}
}

// Times between two looks at tasks.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 2 * time.Second
)

// A waiting is the tasks of tdf wait.
type waiting struct {
	left map[*cli.Client][]int64 // the tasks that have not finished

	bad, gone, all int
	status         int // the exit status of the last one that failed
}

func wait(ctx context.Context, a *cli.App, s *cli.Shards, names []string) error {
	w := &waiting{left: map[*cli.Client][]int64{}}
	for _, name := range names {
		namespace, text := manager.SplitTaskName(name)
		id, err := selection.ID(text)
		if err != nil {
			return err
		}
		m, err := s.In(namespace)
		if err != nil {
			return err
		}
		if !slices.Contains(w.left[m], id) {
			w.left[m] = append(w.left[m], id)
			w.all++
		}
	}
	for pause := firstWait; ; pause = min(longestWait, pause*3/2) {
		left := 0
		for m := range w.left {
			err := w.look(ctx, a, m)
			if err != nil {
				return err
			}
			left += len(w.left[m])
		}
		if left == 0 {
			return w.outcome()
		}
		err := cli.Sleep(ctx, pause)
		if err != nil {
			return err
		}
	}
}

// look counts the tasks that have finished.
func (w *waiting) look(ctx context.Context, a *cli.App, m *cli.Client) error {
	left := w.left[m]
	states := map[int64]task.State{}
	for t, err := range m.List(ctx, manager.Query{IDs: left}) {
		if err != nil {
			return err
		}
		states[t.ID] = t.State
	}
	w.left[m] = nil
	for _, id := range left {
		state, is := states[id]
		switch {
		case !is:
			a.Say("tdf: task %s does not exist: it was removed, or never opened", m.TaskName(id))
			w.gone++
			continue
		case !state.Finished():
			w.left[m] = append(w.left[m], id)
			continue
		}
		t, err := m.Get(ctx, id)
		switch {
		case errors.Is(err, task.ErrNoTask):
			w.gone++
		case err != nil:
			return err
		case t.Outcome == "": // retried since
			w.left[m] = append(w.left[m], id)
		case t.Outcome != string(task.Succeeded):
			r := t.LastRun()
			if r == nil {
				r = &manager.Round{}
			}
			a.Say("tdf: task %s: %s: %s", m.TaskName(id), why(t, r, ""), t.Label())
			w.bad, w.status = w.bad+1, statusOf(t)
		}
	}
	return nil
}

func (w *waiting) outcome() error {
	switch {
	case w.gone > 0:
		return cli.ErrVanished
	case w.bad > 0 && w.all == 1:
		return cli.ExitStatus(w.status)
	case w.bad > 0:
		return cli.TasksFailed(w.bad)
	}
	return nil
}
