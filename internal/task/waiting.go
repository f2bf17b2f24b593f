package task

import (
	"fmt"
)

// Waits reports whether the task is open and waits for its dependencies.
func (t *Task) Waits() bool { return t.State == Open && t.PlacedIn == WaitingPlace }

// MustLink reports whether the server must still look up dependencies of the waiting task.
func (t *Task) MustLink() bool { return t.Waits() && t.Current().Linked < t.Links }

func (t *Task) mustWait() bool { return t.MustLink() || t.Current().Waits > 0 }

// settleWaiting settles a task that waits for its dependencies, and has not expired.
func (t *Task) settleWaiting() (Move, bool) {
	var m Move
	var err error
	r := t.Current()
	switch {
	case r.Unmet != "":
		m, err = t.reject("a dependency was not met: " + r.Unmet)
	case t.mustWait():
		return Move{}, false
	default:
		m, err = t.unblock()
	}
	return m, err == nil
}

// unblock returns a Move after which workers may claim a task that waited for its dependencies.
func (t *Task) unblock() (Move, error) {
	m, err := t.move(VerbUnblock, Open)
	m.enterPlace(t, t.Place())
	m.Stamp = append(m.Stamp, Stamp{fieldReady, m.Score})
	m.Note = "open: what it waited for has ended"
	return m, err
}

// endOfWait returns when the server must next settle an open task that waits for its dependencies.
func (t *Task) endOfWait() Time {
	if t.Current().Unmet != "" || !t.mustWait() {
		return 0
	}
	return t.OpenUntil()
}

// Unmet returns why a dependency on a task that was finished in this state is not met. It is "" if the task has
// succeeded.
func Unmet(id int64, ended State) string {
	if ended == Succeeded {
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
	neededPause   = Seconds(300)
	unlinkedPause = Seconds(1)
)

// ErrNeeded is the error of [Task.Remove] if unfinished tasks wait for the task, or may still read its outputs.
var ErrNeeded = NewError(CodeConflict,
	"unfinished tasks need it (after); cancel them, or wait until they have finished")

func (t *Task) needed() error {
	if t.Dependents == 0 {
		return nil
	}
	return ErrNeeded
}
