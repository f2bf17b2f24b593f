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

func ParseNotOn(text string) (all []NotOn) {
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
