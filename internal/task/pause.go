package task

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/class"
)

// MaxPaused is the largest number of queues and groups that are paused at once.
const MaxPaused = 1000

// A Pausable is what a user can pause: a queue, a group, or the whole namespace (docs/lifecycle.md, "Pausing"). The
// zero value names nothing, so an empty name pauses nothing.
type Pausable struct {
	Namespace bool

	Queue string // [class.DefaultQueue] is the queue of the tasks without a queue
	Group string

	// Failures is 0 for a pause that holds now. Otherwise a server pauses the group as soon as this number of its tasks
	// have failed or timed out. Archived tasks do not count.
	Failures int
}

// Everything is the whole namespace.
var Everything = Pausable{Namespace: true}

// Names of pauses in Redis.
const (
	pausedNamespace = "namespace"
	pausedGroup     = "group="
	haltedGroup     = "halt=" // followed by a number of failures, another =, and the name of the group
)

// String returns the name in Redis, such as "queue=crawl", "group=night" or "namespace".
func (p Pausable) String() string {
	switch {
	case p.Queue != "":
		return class.QueuePart + p.Queue
	case p.Failures > 0:
		return haltedGroup + strconv.Itoa(p.Failures) + "=" + p.Group
	case p.Group != "":
		return pausedGroup + p.Group
	}
	return pausedNamespace
}

// ParsePausable reads a name in Redis. It returns false for any other text.
func ParsePausable(name string) (Pausable, bool) {
	p := Pausable{Namespace: name == pausedNamespace}
	if queue, is := strings.CutPrefix(name, class.QueuePart); is {
		p.Queue = queue
	} else if group, is := strings.CutPrefix(name, pausedGroup); is {
		p.Group = group
	} else if halt, is := strings.CutPrefix(name, haltedGroup); is {
		failures, group, _ := strings.Cut(halt, "=")
		p.Failures, _ = strconv.Atoi(failures)
		p.Group = group
	}
	return p, p != Pausable{} && p.String() == name
}

// Text describes for users what is paused, such as "queue crawl" or "campaign night".
func (p Pausable) Text() string {
	switch {
	case p.Queue != "":
		return "queue " + p.Queue
	case p.Failures > 0:
		return fmt.Sprintf("campaign %s, when %d of its tasks have failed", p.Group, p.Failures)
	case p.Group != "":
		return "campaign " + p.Group
	}
	return "all tasks"
}

// Check returns a *[PropertyError] if no task can have the queue or the group.
func (p Pausable) Check() error {
	if p.Failures < 0 || p.Failures > 0 && (p.Group == "" || p.Queue != "") {
		return invalidProperty(fieldGroup, "a pause after %d failures needs a group, and a number from 1 up",
			p.Failures)
	}
	named := 0
	for _, given := range []bool{p.Queue != "", p.Group != "", p.Namespace} {
		if given {
			named++
		}
	}
	if named != 1 {
		return invalidProperty(fieldGroup, "to pause or to resume, name exactly one of a queue, a group and the namespace")
	}
	if p.Queue != "" {
		return CheckLabel(FieldQueue, p.Queue)
	}
	return checkName(fieldGroup, p.Group)
}

// Paused lists the pauses of a namespace.
type Paused []Pausable

// Withhold returns the queues that are not paused, and the paused groups. Both are nil if the namespace is paused.
func (all Paused) Withhold(shares []class.QueueShare) (queues, groups []string) {
	if slices.Contains(all, Everything) {
		return nil, nil
	}
	for _, s := range shares {
		if !slices.Contains(all, Pausable{Queue: s.Queue}) {
			queues = append(queues, s.Queue)
		}
	}
	for _, p := range all {
		if p.Group != "" {
			groups = append(groups, p.Group)
		}
	}
	return queues, groups
}

// Holds reports which pause keeps workers from claiming the task. It returns false if no pause does.
func (all Paused) Holds(d *Properties) (Pausable, bool) {
	for _, p := range []Pausable{Everything, {Queue: d.Requirement().Queue}, {Group: d.Group}} {
		if slices.Contains(all, p) {
			return p, true
		}
	}
	return Pausable{}, false
}

// IsReached reports whether a server must pause the group now, because enough of its tasks have failed or timed out.
func (p Pausable) IsReached(c Counts) bool {
	return p.Failures > 0 && c[Failed]+c[TimedOut] >= int64(p.Failures)
}
