package tdf

import (
	"strings"

	"github.com/tdf-framework/tdf/internal/class"
)

// A held task is an open task that no worker may claim yet, because it waits for other tasks, because of a limit, or
// because its group is paused. It is in a place that no claim reads. When the reason ends, the server moves the task to
// its own place ([Properties.Place]).

// WaitingPlace is the place of the tasks that wait for other tasks (docs/lifecycle.md, "Dependencies").
const WaitingPlace = "waiting"

// The reasons for which claims hold tasks, before the limit key or the group.
const (
	limitReason = "limit="
	pauseReason = "paused="
)

// LimitReason returns the reason for which claims hold the tasks of a limit key.
func LimitReason(key string) string { return limitReason + key }

// LimitOf returns the limit key of a reason, and GroupOf its paused group, or "".
func LimitOf(reason string) string { return after(reason, limitReason) }
func GroupOf(reason string) string { return after(reason, pauseReason) }

func after(text, prefix string) string {
	if rest, has := strings.CutPrefix(text, prefix); has {
		return rest
	}
	return ""
}

// HeldFor returns the reason for which an open task is held, or "".
func (t *Task) HeldFor() string {
	name := nameIn(t.PlacedIn)
	if t.State == Open && (strings.HasPrefix(name, limitReason) || strings.HasPrefix(name, pauseReason)) {
		return name
	}
	return ""
}

// WaitsForLimit reports whether the open task waits because of the limit of its key (docs/lifecycle.md, "Limits per
// key").
func (t *Task) WaitsForLimit() bool { return LimitOf(t.HeldFor()) != "" }

// IsHeld reports whether the open task is in a place that no claim reads.
func (t *Task) IsHeld() bool { return t.PlacedIn == WaitingPlace || t.HeldFor() != "" }

// ClaimableFrom returns the time from which workers may claim the open task, unless the task is held.
func (t *Task) ClaimableFrom() Time { return max(t.StartAfter, t.Ready, t.Current().Entered[Open]) }

// OpenPlace returns the place in which an open task should be.
func (t *Task) OpenPlace() string {
	reason := t.HeldFor()
	switch {
	case t.PlacedIn == WaitingPlace:
		return t.PlacedIn
	case t.LimitKey != "" && LimitOf(reason) == t.LimitKey, t.Group != "" && GroupOf(reason) == t.Group:
		return PlaceIn(reason, t.Priority)
	}
	return t.Place()
}

// OpenSet returns the name of the set that has an open task (docs/redis.md, "Open tasks"): its requirement, or the
// reason for which it is held. A task without a place is in the list open.
func (t *Task) OpenSet() string {
	if t.OpenPlace() == "" {
		return class.Plain
	}
	return nameIn(t.OpenPlace())
}

// PlacedSet is like OpenSet, but for the place that the task has, whatever its properties say.
func (t *Task) PlacedSet() string { return nameIn(t.PlacedIn) }

// nameIn returns the requirement or the reason in the name of a place.
func nameIn(place string) string {
	name := place
	if strings.HasPrefix(name, class.GroupSet("")) {
		_, name, _ = strings.Cut(name, class.Separator)
	}
	if level, is := strings.CutPrefix(name, priorityPart); is {
		_, name, _ = strings.Cut(level, class.Separator)
		if name == "" {
			return class.Plain
		}
	}
	return name
}
