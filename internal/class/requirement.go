package class

import (
	"net/url"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/internal/unixtime"
)

// A Requirement is what a worker must offer to claim a task: a queue, tags, a handler, resources and time. The due
// tasks with the same requirement share a set in Redis (docs/lifecycle.md, "Queues").
type Requirement struct {
	Queue string   // [DefaultQueue] for tasks without a queue
	Tags  []string // in alphabetical order
	Group string   // the group of a task with by_group, or ""; the name of the requirement does not have it
	// what the task asks for, and how long its round takes at least; nil and 0 if it does not say so
	Resources Request
	MinTime   unixtime.Seconds
	// the program for which the worker must have a handler; "" if the worker must run the task's program
	Handler string
}

// Plain is the name of the requirement of tasks that require nothing but a worker that runs programs.
const Plain = "default"

// The parts of a requirement's name, and their separator. The handler comes last, because the name of a program may
// contain any character.
const (
	Separator     = ";"
	QueuePart     = "queue="
	tagsPart      = "tags="      // with special characters as in a URL
	resourcesPart = "resources=" // see Request.Part
	minTimePart   = "min_time="  // in seconds
	handlerPart   = "handler="
)

// String returns the name of the requirement, such as "queue=crawl;tags=gpu,ssd".
func (p Requirement) String() string {
	var parts []string
	if p.Queue != DefaultQueue {
		parts = append(parts, QueuePart+p.Queue)
	}
	if len(p.Tags) > 0 {
		parts = append(parts, tagsPart+strings.Join(partOfTags(p.Tags), ","))
	}
	if p.Resources != nil {
		parts = append(parts, resourcesPart+p.Resources.Part())
	}
	if p.MinTime > 0 {
		parts = append(parts, minTimePart+p.MinTime.String())
	}
	if p.Handler != "" {
		parts = append(parts, handlerPart+p.Handler)
	}
	if len(parts) == 0 {
		return Plain
	}
	return strings.Join(parts, Separator)
}

// TaskStore is the queue of the tasks that only clients of the TaskStore interface claim.
const TaskStore = "taskstore"

// TaskStoreSet returns the name of the set with the tasks of a group of the TaskStore interface, and GroupSet that of
// the set with the tasks of a group that have by_group.
func TaskStoreSet(group string) string { return "taskstore=" + url.QueryEscape(group) }
func GroupSet(group string) string     { return groupPart + GroupPart(group) }

const groupPart = "group="

// GroupPart returns the name of a group as the name of a set has it.
func GroupPart(group string) string { return url.QueryEscape(group) }

// partOfTags returns tags as the name of a requirement has them.
func partOfTags(tags []string) []string {
	parts := make([]string, len(tags))
	for i, tag := range tags {
		parts[i] = url.QueryEscape(tag)
	}
	return parts
}

// ParseRequirement reads the name of a requirement. It returns false for any other text.
func ParseRequirement(name string) (p Requirement, ok bool) {
	p.Queue = DefaultQueue
	for rest := name; rest != "" && rest != Plain; {
		if handler, is := strings.CutPrefix(rest, handlerPart); is {
			p.Handler = handler
			break
		}
		var part string
		part, rest, _ = strings.Cut(rest, Separator)
		if queue, is := strings.CutPrefix(part, QueuePart); is {
			p.Queue = queue
		} else if tags, is := strings.CutPrefix(part, tagsPart); is {
			for tag := range strings.SplitSeq(tags, ",") {
				tag, _ = url.QueryUnescape(tag) // "" for an invalid text
				p.Tags = append(p.Tags, tag)
			}
			slices.Sort(p.Tags)
			p.Tags = slices.Compact(p.Tags)
		} else if request, is := strings.CutPrefix(part, resourcesPart); is {
			p.Resources = parsePart(request) // nil for an invalid text, which String does not return
		} else if seconds, is := strings.CutPrefix(part, minTimePart); is {
			p.MinTime, _ = unixtime.ParseSeconds(seconds)
		}
	}
	return p, p.Queue != "" && p.String() == name
}
