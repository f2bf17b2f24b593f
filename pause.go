package tdf

import (
	"slices"
	"strings"
)

// MaxPaused is the largest number of queues and groups that are paused at once.
const MaxPaused = 1000

// A Pausable is what a user can pause: a queue, a group, or the whole namespace. The zero value is the namespace
// (docs/lifecycle.md, "Pausing").
type Pausable struct {
	Queue string // [DefaultQueue] is the queue of the tasks without a queue
	Group string
}

// Names of pauses in Redis.
const (
	pausedNamespace = "namespace"
	pausedGroup     = "group="
)

// String returns the name in Redis, such as "queue=crawl", "group=night" or "namespace".
func (p Pausable) String() string {
	switch {
	case p.Queue != "":
		return queuePart + p.Queue
	case p.Group != "":
		return pausedGroup + p.Group
	}
	return pausedNamespace
}

// ParsePausable reads a name in Redis. It returns false for any other text.
func ParsePausable(name string) (Pausable, bool) {
	var p Pausable
	if queue, is := strings.CutPrefix(name, queuePart); is {
		p.Queue = queue
	} else if group, is := strings.CutPrefix(name, pausedGroup); is {
		p.Group = group
	}
	return p, p.String() == name
}

// Text describes for users what is paused, such as "queue crawl" or "campaign night".
func (p Pausable) Text() string {
	switch {
	case p.Queue != "":
		return "queue " + p.Queue
	case p.Group != "":
		return "campaign " + p.Group
	}
	return "all tasks"
}

// Check returns a *[PropertyError] if no task can have the queue or the group.
func (p Pausable) Check() error {
	if p.Queue != "" {
		return CheckLabel(fieldQueue, p.Queue)
	}
	return checkName(fieldGroup, p.Group)
}

// Paused lists the pauses of a namespace.
type Paused []Pausable

// Withhold removes the paused queues. It returns the other queues, and the paused groups. Both are nil if the namespace is
// paused.
func (all Paused) Withhold(queues []QueuePartitions) (left []QueuePartitions, groups []string) {
	if slices.Contains(all, Pausable{}) {
		return nil, nil
	}
	for _, q := range queues {
		if !slices.Contains(all, Pausable{Queue: q.Queue}) {
			left = append(left, q)
		}
	}
	for _, p := range all {
		if p.Group != "" {
			groups = append(groups, p.Group)
		}
	}
	return left, groups
}

// Holds reports which pause keeps workers from claiming the task. It returns false if no pause does.
func (all Paused) Holds(d *Properties) (Pausable, bool) {
	for _, p := range []Pausable{{}, {Queue: d.Partition().Queue}, {Group: d.Group}} {
		if slices.Contains(all, p) {
			return p, true
		}
	}
	return Pausable{}, false
}
