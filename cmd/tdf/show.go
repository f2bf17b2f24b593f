package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/manager"
)

func newShow(a *app) *cobra.Command {
	asJSON, raw := false, false
	c := &cobra.Command{
		Use: "show ID…", Short: "Show everything about tasks",
		Long: "Shows the properties, state and log of tasks, and their rounds with costs and the first lines of output. For a running task, it also\n" +
			"shows the worker, the process id and the time of the last output.",
		Example: "  tdf show 17",
		Args:    someArguments("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return a.withManager(c.Context(), func(m *client) error { return a.show(c.Context(), m, ids, asJSON, raw) })
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line, with the whole outputs")
	c.Flags().BoolVar(&raw, "raw", false, "control characters without escapes")
	return c
}

// show prints the tasks that exist. It returns the error about the last missing task, and prints the errors about other missing
// tasks.
func (a *app) show(ctx context.Context, m *client, ids []int64, asJSON, raw bool) error {
	var missing error
	shown := 0
	for _, id := range ids {
		v, err := a.view(ctx, m, id)
		if errors.Is(err, tdf.ErrNoTask) {
			if missing != nil {
				a.say("tdf: %v", missing)
			}
			missing = err
			continue
		}
		if err != nil {
			return err
		}
		v.raw = raw
		if shown > 0 && !asJSON {
			fmt.Fprintln(a.stdout)
		}
		if err := a.showOne(v, asJSON); err != nil {
			return err
		}
		shown++
	}
	return missing
}

func (a *app) showOne(v *view, asJSON bool) error {
	if asJSON {
		return jsonLines(a.stdout).Encode(v.json())
	}
	return v.write(a.stdout)
}

// A view is a task with its updates and its worker.
type view struct {
	*manager.Task
	now     time.Time
	updates []admin.Update
	worker  *admin.Worker // worker of the running round; nil if no round runs, or if the worker is unknown
	raw     bool
}

// current returns the current round. If Redis contains nothing about this round, the result is empty.
func (v *view) current() *manager.Round {
	if r := v.RoundNumber(v.Round); r != nil {
		return r
	}
	return new(manager.Round)
}

const maxUpdates = 10_000 // maximum number of updates that view reads for a task

// view reads a task with its updates and its worker.
func (a *app) view(ctx context.Context, m *client, id int64) (*view, error) {
	t, err := a.task(ctx, m, id)
	if err != nil {
		return nil, err
	}
	v := &view{Task: t}
	if v.now, err = m.Now(ctx); err != nil {
		return nil, err
	}
	if v.updates, err = m.admin().Updates(ctx, id, admin.Update{}, maxUpdates); err != nil {
		return nil, err
	}
	if t.State != tdf.Running {
		return v, nil
	}
	name := v.current().Worker
	workers, err := m.admin().Workers(ctx)
	if i := slices.IndexFunc(workers, func(w admin.Worker) bool { return w.Name == name }); i >= 0 {
		v.worker = &workers[i]
	}
	return v, err
}

// task reads a task. If the task does not exist, the error explains why.
func (a *app) task(ctx context.Context, m *client, id int64) (*manager.Task, error) {
	t, err := m.Get(ctx, id)
	if errors.Is(err, tdf.ErrNoTask) {
		err = a.noTask(ctx, m, id)
	}
	return t, err
}

// noTask returns an error that explains why a task cannot be read: a [missingTask], or an error of Redis.
func (a *app) noTask(ctx context.Context, m *client, id int64) error {
	last, err := m.admin().LastID(ctx)
	if err != nil {
		return err
	}
	if _, err := m.Get(ctx, id); err == nil {
		return missingTask(fmt.Sprintf("read task %d: its hash has no state and no program; see tdf show %d and tdf check", id, id))
	}
	switch {
	case last == 0:
		return missingTask(fmt.Sprintf("read task %d: no such task; no task was ever opened in this namespace", id))
	case id > last:
		return missingTask(fmt.Sprintf("read task %d: no such task; the last id is %d", id, last))
	}
	return missingTask(fmt.Sprintf("read task %d: no such task; it was removed (the last id is %d)", id, last))
}

// A missingTask is [tdf.ErrNoTask] with more details.
type missingTask string

func (e missingTask) Error() string { return string(e) }
func (e missingTask) Unwrap() error { return tdf.ErrNoTask }
