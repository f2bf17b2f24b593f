package rules

import (
	"fmt"

	"github.com/tdf-framework/tdf/internal/task"
)

func mustWait(t *task.Task) bool { return t.MustLink() || t.Current().Waits > 0 }

// settleWaiting settles a task that waits for its dependencies, and has not expired.
func settleWaiting(t *task.Task) (Move, bool) {
	var m Move
	var err error
	r := t.Current()
	switch {
	case r.Unmet != "":
		m, err = reject(t, "a dependency was not met: "+r.Unmet)
	case mustWait(t):
		return Move{}, false
	default:
		m, err = unblock(t)
	}
	return m, err == nil
}

// unblock returns a Move after which workers may claim a task that waited for its dependencies.
func unblock(t *task.Task) (Move, error) {
	m, err := move(t, VerbUnblock, task.Open)
	m.enterPlace(t, t.Place())
	m.Stamp = append(m.Stamp, Stamp{task.FieldReady, m.Score})
	m.Note = "open: what it waited for has ended"
	return m, err
}

// endOfWait returns when the server must next settle an open task that waits for its dependencies.
func endOfWait(t *task.Task) task.Time {
	if t.Current().Unmet != "" || !mustWait(t) {
		return 0
	}
	return t.OpenUntil()
}

// Unmet returns why a dependency on a task that was finished in this state is not met. It is "" if the task has
// succeeded.
func Unmet(id int64, ended task.State) string {
	if ended == task.Succeeded {
		return ""
	}
	return fmt.Sprintf("task %d: %s", id, ended)
}

// UnmetMissing returns why a dependency on a task is not met if the task does not exist.
func UnmetMissing(id int64) string { return fmt.Sprintf("task %d does not exist", id) }

// UnmetGroup returns why a dependency on a complete group is not met. It is "" if all tasks of the group have
// succeeded. The caller passes the number of tasks that did not succeed.
func UnmetGroup(group string, unsuccessful int64) string {
	switch unsuccessful {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("group %q: 1 task did not succeed", group)
	}
	return fmt.Sprintf("group %q: %d tasks did not succeed", group, unsuccessful)
}

// neededPause is the time until the server tries again to remove a finished task that unfinished tasks need.
// unlinkedPause is this time if Redis does not know yet whether unfinished tasks need the task.
const (
	neededPause   = task.Seconds(300)
	unlinkedPause = task.Seconds(1)
)

// ErrNeeded is the error of [Remove] if unfinished tasks wait for the task, or may still read its outputs.
var ErrNeeded = task.NewError(task.CodeConflict,
	"unfinished tasks need it (after); cancel them, or wait until they have finished")

func needed(t *task.Task) error {
	if t.Dependents == 0 {
		return nil
	}
	return ErrNeeded
}
