package task

import (
	"slices"
	"strings"
)

// A NotOn says that a worker must not run a task.
type NotOn struct {
	Worker string
	Until  Time // Never if a user has said so, and otherwise when the worker may try the task again
}

// String returns the line of the property not_on.
func (n NotOn) String() string {
	if n.Until >= Never {
		return n.Worker
	}
	return n.Worker + "\t" + n.Until.String()
}

func parseNotOn(text string) (all []NotOn) {
	for _, line := range splitLines(text) {
		worker, until, _ := strings.Cut(line, "\t")
		n := NotOn{worker, Never}
		if until != "" {
			n.Until, _ = ParseTime(until)
		}
		all = append(all, n)
	}
	return all
}

// Refuses reports whether a worker must not run the task at the time now.
func (t *Task) Refuses(worker string, now Time) bool {
	return slices.ContainsFunc(t.NotOn, func(n NotOn) bool { return n.Worker == worker && now < n.Until })
}

// NamesNotOn returns the workers that must not run the task, now or for some time.
func (t *Task) NamesNotOn() (names []string) {
	for _, n := range t.NotOn {
		names = append(names, n.Worker)
	}
	return names
}

// maxNotOn is how many lines of users the property not_on keeps, and how many with a time: the last ones. So workers
// that put the task off push out no line of a user.
const maxNotOn = 16

// refuse adds a line to the property not_on, instead of an earlier one for the same worker. A line of a user remains.
func (m *Move) refuse(t *Task, n NotOn) {
	var ofUsers, timed []string
	add := func(n NotOn) {
		lines := &timed
		if n.Until >= Never {
			lines = &ofUsers
		}
		*lines = append(*lines, n.String())
	}
	for _, other := range t.NotOn {
		if other.Worker == n.Worker {
			n.Until = max(n.Until, other.Until)
		} else {
			add(other)
		}
	}
	add(n)
	last := func(lines []string) []string { return lines[max(0, len(lines)-maxNotOn):] }
	m.set(fieldNotOn, strings.Join(append(last(ofUsers), last(timed)...), "\n"))
}
