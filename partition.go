package tdf

import (
	"net/url"
	"slices"
	"strings"
)

// A Partition is the queue, the tags and the handler that a worker must offer to claim a task, and the group of a task
// with ByGroup. Tasks with the same partition share a part of the open list (docs/lifecycle.md, "Queues").
type Partition struct {
	Queue string   // [DefaultQueue] for tasks without a queue
	Tags  []string // in alphabetical order
	Group string   // the group by which workers for this group find the tasks; "" for all other tasks
	// what the task asks for, and how long its round takes at least; nil and 0 if it does not say so
	Resources ResourceRequest
	MinTime   Seconds
	// the program for which the worker must have a handler; "" if the worker must run the task's program
	Handler string
}

// DefaultPartition is the name of the partition of tasks with no queue, no tags and no handler.
const DefaultPartition = "default"

// Partition returns the partition of a task. Only a worker with a handler can run a program without a source.
func (d *Properties) Partition() Partition {
	p := Partition{Queue: d.Queue, Tags: slices.Compact(slices.Sorted(slices.Values(d.Tags)))}
	if p.Queue == "" {
		p.Queue = DefaultQueue
	}
	if d.ByGroup {
		p.Group = d.Group
	}
	if d.Resources != "" {
		p.Resources, _ = ParseResourceRequest(d.Resources) // nil for an invalid text, which Validate refuses
	}
	p.MinTime = d.MinTime
	if d.Source == "" {
		p.Handler = d.Program
	}
	return p
}

// The parts of a partition's name. The handler comes last, because the name of a program may contain any character.
const (
	partSeparator = ";"
	queuePart     = "queue="
	tagsPart      = "tags=" // with special characters as in a URL, like group=
	groupPart     = "group="
	resourcesPart = "resources=" // see ResourceRequest.Part
	minTimePart   = "min_time="  // in seconds
	handlerPart   = "handler="
)

// String returns the name of the partition in Redis, such as "queue=crawl;tags=gpu,ssd".
func (p Partition) String() string {
	var parts []string
	if p.Queue != DefaultQueue {
		parts = append(parts, queuePart+p.Queue)
	}
	if len(p.Tags) > 0 {
		parts = append(parts, tagsPart+strings.Join(partOfTags(p.Tags), ","))
	}
	if p.Group != "" {
		parts = append(parts, groupPart+partOfGroup(p.Group))
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
		return DefaultPartition
	}
	return strings.Join(parts, partSeparator)
}

// partOfGroup returns the name of a group as the name of a partition has it.
func partOfGroup(group string) string { return url.QueryEscape(group) }

// partOfTags returns tags as the name of a partition has them.
func partOfTags(tags []string) []string {
	parts := make([]string, len(tags))
	for i, tag := range tags {
		parts[i] = url.QueryEscape(tag)
	}
	return parts
}

// ParsePartition reads the name of a partition. It returns false for any other text.
func ParsePartition(name string) (p Partition, ok bool) {
	p.Queue = DefaultQueue
	for rest := name; rest != "" && rest != DefaultPartition; {
		if handler, is := strings.CutPrefix(rest, handlerPart); is {
			p.Handler = handler
			break
		}
		var part string
		part, rest, _ = strings.Cut(rest, partSeparator)
		if queue, is := strings.CutPrefix(part, queuePart); is {
			p.Queue = queue
		} else if tags, is := strings.CutPrefix(part, tagsPart); is {
			for tag := range strings.SplitSeq(tags, ",") {
				tag, _ = url.QueryUnescape(tag) // "" for an invalid text
				p.Tags = append(p.Tags, tag)
			}
			slices.Sort(p.Tags)
			p.Tags = slices.Compact(p.Tags)
		} else if group, is := strings.CutPrefix(part, groupPart); is {
			p.Group, _ = url.QueryUnescape(group) // "" for an invalid text, which String does not return
		} else if request, is := strings.CutPrefix(part, resourcesPart); is {
			p.Resources = parseRequestPart(request) // nil for an invalid text, which String does not return
		} else if seconds, is := strings.CutPrefix(part, minTimePart); is {
			p.MinTime, _ = ParseSeconds(seconds)
		}
	}
	return p, p.Queue != "" && p.String() == name
}
