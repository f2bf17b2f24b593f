package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/bench/internal/child"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/manager"
)

// namespace is TDF's namespace.
const namespace = "bench"

// A tdfSystem is TDF. If the field whole is true, a server and a manager also run, and a task counts as processed when
// it is archived.
type tdfSystem struct{ whole bool }

func (s tdfSystem) opener(t *trial, j job) (*child.Process, error) {
	j.System, j.Role = "tdf", "opener"
	p, err := t.startSelf(j)
	if err != nil || !s.whole {
		return p, err
	}
	if err := t.startServer(); err != nil {
		return nil, err
	}
	return p, p.Call("archive", nil)
}

func (t *trial) startServer() error {
	_, err := t.startSelf(job{System: "tdf", Role: "server"})
	return err
}

func (s tdfSystem) worker(t *trial, j job) (*child.Process, error) {
	j.System, j.Role, j.Workers = "tdf", "worker", max(j.Workers, 1)
	return t.startSelf(j)
}

func (s tdfSystem) waiting(t *trial) (int64, error) { return t.count(tdf.Open) }

func (s tdfSystem) processed(t *trial) (int64, error) { return t.count(s.finalState()) }

// finalState returns the state of processed tasks.
func (s tdfSystem) finalState() tdf.State {
	if s.whole {
		return tdf.Archived
	}
	return tdf.Executed
}

// count returns the number of tasks in a state.
func (t *trial) count(state tdf.State) (int64, error) {
	return t.rdb.ZCard(t.ctx, namespace+":"+string(state)).Result()
}

func (s tdfSystem) checkOpened(t *trial, n int) error { return checkTDF(t, n, tdf.Open) }

func (s tdfSystem) checkProcessed(t *trial, n int) error { return checkTDF(t, n, s.finalState()) }

// transitions lists the states that a task of a measurement enters, in order.
var transitions = []tdf.State{tdf.Open, tdf.Running, tdf.Executed, tdf.Succeeded, tdf.Archived}

// checkTDF reads a sample of the tasks with the ids 1 to n, and checks that each task is complete.
func checkTDF(t *trial, n int, state tdf.State) error {
	m, err := newManager(t.redis.Port)
	if err != nil {
		return err
	}
	defer m.Close()
	for _, i := range sampled(n) {
		task, err := m.Get(t.ctx, int64(i)+1)
		if err != nil {
			return err
		}
		if state == tdf.Executed && task.State == tdf.Open && task.Releases > 0 {
			continue // one of a backlog that was under way when n others were done, and the worker was stopped
		}
		number, err := numberOf(task.Input) // several callers open tasks in any order
		if err != nil || number >= int64(n) {
			return fmt.Errorf("task %d: read back: %w", task.ID,
				cmp.Or(err, fmt.Errorf("input %q is none of %d", task.Input, n)))
		}
		if err := checkTask(task, number, state); err != nil {
			return fmt.Errorf("task %d: %w", task.ID, err)
		}
	}
	return nil
}

func checkTask(task *manager.Task, number int64, state tdf.State) error {
	entered := 0
	for entered < len(transitions) && transitions[entered] != state {
		entered++
	}
	for _, err := range []error{
		expect("state", task.State, state),
		expect("input", task.Input, payload(number)),
		expect("program", task.Program, namespace),
		expect("round", task.Round, 0),
		expect("lines of the log", len(task.Log), entered+1),
	} {
		if err != nil {
			return fmt.Errorf("%w (log: %q)", err, task.Log)
		}
	}
	for i, line := range task.Log {
		if !strings.Contains(strings.ToLower(line), logWord(transitions[i])) {
			return fmt.Errorf("read back: line %d of the log is %q, want %q", i+1, line, transitions[i])
		}
	}
	if state == tdf.Open {
		return nil
	}
	return checkRun(task.LastRun(), transitions[:entered+1])
}

func logWord(state tdf.State) string { return strings.ToLower(string(state)) }

func checkRun(r *manager.Round, entered []tdf.State) error {
	if r == nil {
		return fmt.Errorf("read back: the task has no round")
	}
	for _, state := range entered {
		if r.Entered[state].IsZero() {
			return fmt.Errorf("read back: the time of state %s is missing", state)
		}
	}
	for _, err := range []error{
		expect("worker", r.Worker, workerName(1)),
		expect("exit", r.Exit, "0"),
		expect("output", r.Output, ""),
		expect("error", r.Error, ""),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func redisConfig(port int) config.Redis { return config.Redis{Host: "127.0.0.1", Port: port} }

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func newManager(port int) (*manager.Manager, error) {
	return manager.New(manager.Options{
		Redis: redisConfig(port), Namespace: namespace, Log: discard(),
		Progress: io.Discard,
	})
}

func definition(number int64) manager.Definition {
	return manager.Definition{Program: namespace, Source: "rsync:/srv/bench/run.sh", Input: payload(number)}
}

// connectedManager returns a manager that is connected to Redis.
func connectedManager(ctx context.Context, port int) (*manager.Manager, error) {
	m, err := newManager(port)
	if err != nil {
		return nil, err
	}
	return m, m.Connect(ctx)
}
