package look

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/jsonview"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

func Show(a *cli.App) *cobra.Command {
	asJSON, raw := false, false
	c := &cobra.Command{
		Use: "show ID…", Short: "Show everything about tasks",
		Long: "Shows the properties, state and log of tasks, and their rounds with costs and the first lines of " +
			"output. For a running task, it also\n" +
			"shows the worker, the process id and the time of the last output.",
		Example: "  tdf show 17\n  tdf show 17 18 --json",
		Args:    cli.SomeArguments("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			for _, name := range args {
				if _, err := idsOf(name); err != nil {
					return err
				}
			}
			return a.WithShards(c.Context(), func(s *cli.Shards) error {
				return showTasks(c.Context(), a, s, args, asJSON, raw)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line, with the whole outputs")
	c.Flags().BoolVar(&raw, "raw", false, "control characters without escapes")
	return c
}

// idsOf returns the ids in the name of tasks.
func idsOf(name string) ([]int64, error) {
	_, ids := manager.SplitTaskName(name)
	return cli.ParseIDs([]string{ids})
}

// showTasks prints the tasks that exist. It returns the error about the last missing task, and prints the errors about
// other missing tasks.
func showTasks(ctx context.Context, a *cli.App, s *cli.Shards, names []string, asJSON, raw bool) error {
	var missing error
	shown := 0
	for _, name := range names {
		namespace, _ := manager.SplitTaskName(name)
		m, err := s.In(namespace)
		if err != nil {
			return err
		}
		ids, _ := idsOf(name) // valid
		for _, id := range ids {
			v, err := readView(ctx, a, m, id)
			if errors.Is(err, task.ErrNoTask) {
				if missing != nil {
					a.Say("tdf: %v", missing)
				}
				missing = err
				continue
			}
			if err != nil {
				return err
			}
			v.raw = raw
			if shown > 0 && !asJSON {
				fmt.Fprintln(a.Stdout)
			}
			if err := showOne(a, v, asJSON); err != nil {
				return err
			}
			shown++
		}
	}
	return missing
}

func showOne(a *cli.App, v *view, asJSON bool) error {
	if asJSON {
		return cli.JsonLines(a.Stdout).Encode(v.json())
	}
	return v.write(a.Stdout)
}

// A view is a task with its last update and its worker.
type view struct {
	*manager.Task
	now     time.Time
	updates int            // number of its updates
	last    []admin.Update // the newest update, if it has any
	worker  *admin.Worker  // worker of the running round; nil if no round runs, or if the worker is unknown
	raw     bool
}

// current returns the current round. If Redis contains nothing about this round, the result is empty.
func (v *view) current() *manager.Round {
	if r := v.RoundNumber(v.Round); r != nil {
		return r
	}
	return new(manager.Round)
}

// readView reads a task with its last update and its worker.
func readView(ctx context.Context, a *cli.App, m *cli.Client, id int64) (*view, error) {
	t, err := readTask(ctx, a, m, id)
	if err != nil {
		return nil, err
	}
	v := &view{Task: t}
	if v.now, err = m.Now(ctx); err != nil {
		return nil, err
	}
	if v.last, v.updates, err = m.Admin().LastUpdates(ctx, id, 1); err != nil {
		return nil, err
	}
	if t.State != task.Running {
		return v, nil
	}
	name := v.current().Worker
	workers, err := m.Admin().Workers(ctx)
	if i := slices.IndexFunc(workers, func(w admin.Worker) bool { return w.Name == name }); i >= 0 {
		v.worker = &workers[i]
	}
	return v, err
}

// readTask reads a task. If the task does not exist, the error explains why.
func readTask(ctx context.Context, a *cli.App, m *cli.Client, id int64) (*manager.Task, error) {
	t, err := m.Get(ctx, id)
	if errors.Is(err, task.ErrNoTask) {
		return t, noTask(ctx, a, m, id)
	}
	if err == nil {
		t.Namespace = m.Namespace()
	}
	return t, err
}

// noTask returns an error that explains why a task cannot be read: a [missingTask], or an error of Redis.
func noTask(ctx context.Context, a *cli.App, m *cli.Client, id int64) error {
	last, err := m.Admin().LastID(ctx)
	if err != nil {
		return err
	}
	name := m.TaskName(id)
	if _, err := m.Get(ctx, id); err == nil {
		return missingTask(fmt.Sprintf("read task %s: its hash has no state and no program; see tdf show %s and tdf "+
			"check", name, name))
	}
	switch {
	case last == 0:
		return missingTask(fmt.Sprintf("read task %s: no such task; no task was ever opened in this namespace", name))
	case id > last:
		return missingTask(fmt.Sprintf("read task %s: no such task; the last id is %d", name, last))
	}
	return missingTask(fmt.Sprintf("read task %s: no such task; it was removed (the last id is %d)", name, last))
}

// A missingTask is [task.ErrNoTask] with more details.
type missingTask string

func (e missingTask) Error() string { return string(e) }
func (e missingTask) Unwrap() error { return task.ErrNoTask }

// json returns the task as JSON, with facts that the task itself does not contain.
func (v *view) json() jsonview.Object {
	var others jsonview.Object
	others.Set("updates", v.updates)
	if v.State == task.Running {
		v.addRunning(&others)
	}
	return v.Task.JSON(others)
}

// addRunning adds the worker of a running task, and the time since the last output.
func (v *view) addRunning(o *jsonview.Object) {
	if v.worker != nil {
		if v.worker.Host != "" {
			o.Set("host", v.worker.Host)
		}
		o.Set("worker_alive", v.worker.Alive)
	}
	if last := v.current().LastOutput; !last.IsZero() && v.now.After(last) {
		o.Set("silent_seconds", v.now.Sub(last).Seconds())
	}
}
