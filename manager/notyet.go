package manager

import (
	"context"
	"strings"
)

// mostNamed is the largest number of groups that a warning names, or that sayEmpty counts.
const mostNamed = 10

// sayEmpty warns after the first round of a Run that ends with its groups, if some of them have no tasks: their names
// may be wrong.
func (r *run) sayEmpty(ctx context.Context) error {
	if r.rounds > 1 || r.Stop != nil || r.stages != nil {
		return nil
	}
	var empty []string
	for _, group := range r.Groups[:min(len(r.Groups), mostNamed)] {
		counts, err := r.in().Store.Counts(ctx, group)
		if err != nil {
			return err
		}
		if counts.Total() == 0 {
			empty = append(empty, group)
		}
	}
	if len(empty) > 0 {
		r.in().Log.Warn("groups have no tasks, and Run does not wait for the first ones", "groups", strings.Join(empty, ", "))
	}
	return nil
}

// sayNotYet warns once if tasks wait because of ErrNotYet, although no other task can finish: a task for which they
// wait may have failed.
func (r *run) sayNotYet() {
	if r.summary.Counts.Unfinished() > 0 || r.summary.Archived > 0 {
		r.saidIt = false
		return
	}
	waiting, first := 0, int64(0)
	for id, again := range r.backoff {
		switch {
		case again.notYet != nil:
			if waiting++; first == 0 || id < first {
				first = id
			}
		case !again.givenUp: // its callback is called again
			return
		}
	}
	if waiting == 0 || r.summary.Running > 0 || r.saidIt {
		return
	}
	r.saidIt = true
	r.in().Log.Warn("callbacks return ErrNotYet, but all tasks have finished; the tasks stay until something else changes",
		"tasks", waiting, "task", first, "error", r.backoff[first].notYet)
}
