package tdf

import (
	"strings"

	"github.com/tdf-framework/tdf/internal/class"
)

// A held task is an open task that no worker may claim yet, because it waits for other tasks or for a limit. It is in a
// place that no claim reads. When the wait ends, the server moves the task to the place of its queue, tags and priority
// ([Properties.Place]).

// WaitingPlace is the place of the tasks that wait for other tasks (docs/lifecycle.md, "Dependencies").
const WaitingPlace = "waiting"

// limitPart is the beginning of a name of a part of the open list. Such a part has the tasks that wait because of the
// limit of one key. Like a partition, it has a place for each priority.
const limitPart = "limit="

// IsHeld reports whether a place is one that no claim reads.
func IsHeld(place string) bool { return place == WaitingPlace || waitsForLimit(place) }

// waitsForLimit reports whether the tasks of a place wait because of the limit of their key.
func waitsForLimit(place string) bool {
	if level, is := strings.CutPrefix(place, priorityPart); is {
		_, place, _ = strings.Cut(level, class.Separator)
	}
	return strings.HasPrefix(place, limitPart)
}

// WaitsForLimit reports whether the open task waits because of the limit of its key (docs/lifecycle.md, "Limits per
// key").
func (t *Task) WaitsForLimit() bool { return t.State == Open && waitsForLimit(t.PlacedIn) }

// ClaimableFrom returns the time from which workers may claim the open task, unless the task is held.
func (t *Task) ClaimableFrom() Time { return max(t.StartAfter, t.Ready, t.Current().Entered[Open]) }

// LimitPart returns the part of the open list that has the tasks that wait because of the limit of a key.
func LimitPart(key string) string { return limitPart + key }

// OpenPart returns the part of the open list in which an open task should be: its partition, or the part of its limit
// key.
func (t *Task) OpenPart() string {
	if t.WaitsForLimit() {
		return LimitPart(t.LimitKey)
	}
	return t.Requirement().String()
}

// LimitPlace returns the place of the tasks that have a priority, and wait because of the limit of a key.
func LimitPlace(key string, priority int) string { return PlaceIn(LimitPart(key), priority) }

// OpenPlace returns the place in which an open task should be.
func (t *Task) OpenPlace() string {
	switch {
	case t.PlacedIn == WaitingPlace:
		return t.PlacedIn
	case waitsForLimit(t.PlacedIn) && t.LimitKey != "":
		return LimitPlace(t.LimitKey, t.Priority)
	}
	return t.Place()
}
