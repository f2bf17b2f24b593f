package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/sweep"
)

const programName = "wordcount"

// A wordCount is one run of the example. Its tasks are a group. The meta of each task is the number of files that the
// task covers: 1 for a map task. All state is in Redis, so another manager can continue the run at any time.
type wordCount struct {
	m       *manager.Manager
	source  string
	group   string
	files   []string
	counts  string // the output of the task that covers all files
	failure error  // the first task that failed
}

// run opens the map tasks, waits for the last reduce task, and returns its output.
func (w *wordCount) run(ctx context.Context) (string, error) {
	if err := w.open(ctx); err != nil {
		return "", err
	}
	if err := w.readResult(ctx); err != nil || w.counts != "" {
		return w.counts, err
	}
	err := w.m.Run(ctx, manager.Callbacks{
		Groups:     []string{w.group},
		Succeeded:  w.succeeded,
		Failed:     w.failed,
		TimedOut:   w.failed,
		Expired:    w.failed,
		EndOfRound: func(context.Context, manager.Summary) error { return w.failure },
	})
	if err != nil {
		return "", err
	}
	return w.counts, w.readResult(ctx) // another manager may have handled the last task
}

// open opens the map tasks, unless an earlier start or another manager has opened them.
func (w *wordCount) open(ctx context.Context) error {
	var tasks []manager.Definition
	for _, file := range w.files {
		tasks = append(tasks, w.task("map "+sweep.Quote(file), 1))
	}
	if _, err := w.m.OpenGroup(ctx, tasks...); !errors.Is(err, manager.ErrGroupTaken) {
		return err
	}
	return nil
}

func (w *wordCount) task(input string, files int) manager.Definition {
	return manager.Definition{
		Program: programName, Source: w.source, Input: input, Group: w.group, Meta: strconv.Itoa(files),
		MaxLosses: new(1000), // workers may be killed at any time
	}
}

// covered returns the number of files that a task covers.
func covered(t *manager.Task) int {
	n, _ := strconv.Atoi(t.Meta)
	return n
}

// succeeded merges the counts of a task with those of other tasks that have succeeded. In one step, Run archives all of
// these tasks and opens the reduce task. So each count is in exactly one task that is not archived.
func (w *wordCount) succeeded(ctx context.Context, t *manager.Finished) error {
	if covered(t.Task) == len(w.files) {
		return nil
	}
	input, others, full := "reduce"+words(t.Task), 0, false
	for other, err := range w.m.List(ctx, manager.Query{
		Group: w.group, States: []tdf.State{tdf.Succeeded},
		Read: manager.ReadOutput,
	}) {
		if err != nil {
			return err
		}
		if other.ID == t.ID {
			continue
		}
		next := input + words(other)
		if full = len(next) > tdf.MaxInput; full {
			break
		}
		input = next
		others += covered(other)
		t.Archive(other)
	}
	switch {
	case others > 0:
		t.Open(w.task(input, others+covered(t.Task)))
		return nil
	case full:
		w.failure = fmt.Errorf("merge the counts of task %d: more than %d bytes, the longest input of a task; count "+
			"fewer files", t.ID, tdf.MaxInput)
		return w.failure
	}
	return manager.ErrNotYet
}

// words returns the counts of a task as words of an input.
func words(t *manager.Task) string { return " " + strings.Join(strings.Fields(t.Output()), " ") }

func (w *wordCount) failed(_ context.Context, t *manager.Finished) error {
	w.failure = fmt.Errorf("task %d (%.60s) %s: %s", t.ID, t.Input, t.Outcome, strings.TrimSpace(t.Stderr()))
	return w.failure
}

// readResult reads the counts, if the task that covers all files is archived.
func (w *wordCount) readResult(ctx context.Context) error {
	for t, err := range w.m.List(ctx, manager.Query{
		Group: w.group, States: []tdf.State{tdf.Archived},
		Read: manager.ReadOutput,
	}) {
		if err != nil {
			return err
		}
		if covered(t) == len(w.files) {
			w.counts = t.Output()
			return nil
		}
	}
	return nil
}
