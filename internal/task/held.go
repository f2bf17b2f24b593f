package task

import (
	"crypto/sha1" // names a source; nothing needs to be secret
	"encoding/hex"
	"strings"

	"github.com/tdf-framework/tdf/internal/class"
)

// A held task is an open task that no worker may claim yet, because it waits for other tasks, because of a limit, or
// because its group is paused, or because its program fails to start. It is in a place that no claim reads. When the
// reason ends, the server moves the task to its own place ([Properties.Place]).

// WaitingPlace is the place of the tasks that wait for other tasks (docs/lifecycle.md, "Dependencies").
const WaitingPlace = "waiting"

// The reasons for which claims hold tasks, before the limit key, the group or the name of a source.
const (
	limitReason  = "limit="
	pauseReason  = "paused="
	sourceReason = "source="
)

// homeMark separates the reason in the place of a held task from the place to which the task returns.
const homeMark = "\n"

// LimitReason returns the reason for which claims hold the tasks of a limit key.
func LimitReason(key string) string { return limitReason + key }

// PauseReason returns the reason for which claims hold the tasks of a paused group.
func PauseReason(group string) string { return pauseReason + group }

// SourceReason returns the reason for which claims hold the tasks of a source (docs/lifecycle.md, "Held programs").
func SourceReason(source string) string { return sourceReason + source }

// LimitOf returns the limit key of a reason, GroupOf its paused group, and SourceOf the name of its source, or "".
func LimitOf(reason string) string  { return after(reason, limitReason) }
func GroupOf(reason string) string  { return after(reason, pauseReason) }
func SourceOf(reason string) string { return after(reason, sourceReason) }

// SourceName returns the name of what workers start for the task: its program and its source.
func (d *Properties) SourceName() string {
	sum := sha1.Sum([]byte(d.Program + "\n" + d.Source))
	return hex.EncodeToString(sum[:])
}

func after(text, prefix string) string {
	if rest, has := strings.CutPrefix(text, prefix); has {
		return rest
	}
	return ""
}

// HeldFor returns the reason for which an open task is held, or "".
func (t *Task) HeldFor() string {
	reason, _, held := strings.Cut(t.PlacedIn, homeMark)
	if t.State == Open && held {
		return reason
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
	case t.LimitKey != "" && LimitOf(reason) == t.LimitKey, t.Group != "" && GroupOf(reason) == t.Group,
		SourceOf(reason) != "" && SourceOf(reason) == t.SourceName():
		return reason + homeMark + t.Place()
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

// nameIn returns the requirement, or the reason, in the name of a place.
func nameIn(place string) string {
	name, _, held := strings.Cut(place, homeMark)
	if held {
		return name
	}
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

// Waits reports whether the task is open and waits for its dependencies.
func (t *Task) Waits() bool { return t.State == Open && t.PlacedIn == WaitingPlace }

// MustLink reports whether the server must still look up dependencies of the waiting task.
func (t *Task) MustLink() bool { return t.Waits() && t.Current().Linked < t.Links }
