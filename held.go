package tdf

import "strings"

// A held task is an open task that no worker may claim yet, because it waits for something. It has a place of its own, which
// no claim reads. When the wait ends, the server moves the task to the place that its queue, tags and priority give it
// ([Properties.Place]).

// WaitingPlace is the place of the tasks that wait for other tasks (docs/lifecycle.md, "Dependencies").
const WaitingPlace = "waiting"

// limitPlace is the beginning of the names of the places of tasks that wait because of the limit of their key.
const limitPlace = "limit="

// IsHeld reports whether no claim reads a place.
func IsHeld(place string) bool { return place == WaitingPlace || strings.HasPrefix(place, limitPlace) }

// OpenPlace returns the place that an open task should have.
func (t *Task) OpenPlace() string {
	if IsHeld(t.PlacedIn) {
		return t.PlacedIn
	}
	return t.Place()
}
