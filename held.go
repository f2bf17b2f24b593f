package tdf

import "strings"

// A held task is an open task that no worker may claim yet, because it waits for something. It has a place of its own, which
// no claim reads. When the wait ends, the server moves the task to the place that its queue, tags and priority give it
// ([Properties.Place]).

// WaitingPlace is the place of the tasks that wait for other tasks (docs/lifecycle.md, "Dependencies").
const WaitingPlace = "waiting"

// limitPart is the beginning of the name of the part of the open list that has the tasks that wait because of the limit of
// their key. Like a partition, this part has a place for each priority.
const limitPart = "limit="

// IsHeld reports whether no claim reads a place.
func IsHeld(place string) bool { return place == WaitingPlace || waitsForLimit(place) }

// waitsForLimit reports whether the tasks of a place wait because of the limit of their key.
func waitsForLimit(place string) bool {
	if level, is := strings.CutPrefix(place, priorityPart); is {
		_, place, _ = strings.Cut(level, partSeparator)
	}
	return strings.HasPrefix(place, limitPart)
}

// WaitsForLimit reports whether the open task waits because of the limit of its key (docs/lifecycle.md, "Limits per key").
func (t *Task) WaitsForLimit() bool { return t.State == Open && waitsForLimit(t.PlacedIn) }

// LimitPlace returns the place of the tasks with a priority that wait because of the limit of a key.
func LimitPlace(key string, priority int) string { return placeIn(limitPart+key, priority) }

// OpenPlace returns the place that an open task should have.
func (t *Task) OpenPlace() string {
	switch {
	case t.PlacedIn == WaitingPlace:
		return t.PlacedIn
	case waitsForLimit(t.PlacedIn) && t.LimitKey != "":
		return LimitPlace(t.LimitKey, t.Priority)
	}
	return t.Place()
}

// placeAfterChange returns the place of an open task after its properties have become d. A task that waits because of the
// limit of its key goes on waiting, unless its key or its start_after has changed.
func (t *Task) placeAfterChange(d *Properties) string {
	switch {
	case t.PlacedIn == WaitingPlace:
		return t.PlacedIn
	case waitsForLimit(t.PlacedIn) && d.LimitKey == t.LimitKey && d.LimitKey != "" && d.StartAfter == t.StartAfter:
		return LimitPlace(d.LimitKey, d.Priority)
	}
	return d.Place()
}
