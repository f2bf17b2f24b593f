package class

import (
	"slices"

	"github.com/tdf-framework/tdf/internal/unixtime"
)

// An Offer says which tasks a worker may claim (docs/lifecycle.md, "Queues").
type Offer struct {
	Queues   []QueueShare // the queues that the worker serves; none means the queue of the tasks without a queue
	Tags     []string     // a task's tags must all be among these tags
	Handlers []string     // the programs for which the worker has handlers, so that it can run tasks without a source
	Programs bool         // whether the worker fetches and runs programs, so that it can run tasks with a source
	Anything bool         // whether the worker has a handler for every program

	// Resources are what the worker has when no task runs. Nil means that it offers no resources, and claims only tasks
	// that ask for nothing.
	Resources Amounts

	// TimeLeft is how long the worker's programs may still run. It claims no task with a longer min_time. 0 means that
	// it has no time limit.
	TimeLeft unixtime.Seconds

	// Group is the group of the tasks that the worker claims, if they have the property by_group; "" means the tasks of
	// all groups, and those without a group.
	Group string
}

// A Need is a part of a [Requirement].
type Need int

// The needs that a worker's offer meets or lacks.
const (
	Queue Need = iota
	Tags
	Program // a handler for the program, or that the worker fetches and runs programs
	Group
	Resources
	Time
)

// rules say when an offer meets each need. A worker may claim a task if its offer meets all needs of the task.
var rules = []struct {
	need Need
	met  func(o *Offer, r *Requirement) bool
}{
	{Queue, func(o *Offer, r *Requirement) bool { return slices.ContainsFunc(o.Shares(), r.isOf) }},
	{Tags, func(o *Offer, r *Requirement) bool { return !slices.ContainsFunc(r.Tags, o.lacksTag) }},
	{Program, func(o *Offer, r *Requirement) bool { return o.runs(r.Handler) }},
	{Group, func(o *Offer, r *Requirement) bool { return o.Group == "" || o.Group == r.Group }},
	{Resources, func(o *Offer, r *Requirement) bool { return o.fits(r.Resources) }},
	{Time, func(o *Offer, r *Requirement) bool { return o.TimeLeft <= 0 || r.MinTime <= o.TimeLeft }},
}

// Version is the version of the rules: clients with other rules keep other records of what a worker serves. Raise it
// when a rule changes.
const Version = 1

// Serves reports whether a worker with this offer may claim the tasks with this requirement.
func Serves(o *Offer, r Requirement) bool { return len(Lacks(o, r)) == 0 }

// Lacks returns the needs that the offer does not meet, each without regard to the others.
func Lacks(o *Offer, r Requirement) (lacks []Need) {
	for _, rule := range rules {
		if !rule.met(o, &r) {
			lacks = append(lacks, rule.need)
		}
	}
	return lacks
}

// Shares returns the queues that the worker serves: those of the offer, or [DefaultQueue].
func (o *Offer) Shares() []QueueShare {
	if len(o.Queues) == 0 {
		return []QueueShare{{Queue: DefaultQueue}}
	}
	return o.Queues
}

func (r *Requirement) isOf(s QueueShare) bool { return s.Queue == r.Queue }

func (o *Offer) lacksTag(tag string) bool { return !slices.Contains(o.Tags, tag) }

// runs reports whether the worker can run the tasks of a handler, or those without one if handler is "".
func (o *Offer) runs(handler string) bool {
	if handler == "" {
		return o.Programs
	}
	return o.Anything || slices.Contains(o.Handlers, handler)
}

// fits reports whether a task with this request fits when no other task runs.
func (o *Offer) fits(r Request) bool {
	if r == nil {
		return o.Resources == nil || o.Resources.Of(CPUs) > 0
	}
	_, alternative := CapacitiesOf(o.Resources).Without(r)
	return alternative >= 0
}

// Served returns what claims know of a requirement: the min_time, and behind a semicolon the alternatives of the
// request that fit when no other task runs. It returns false if the worker does not serve the requirement, whatever its
// queue, its group and its time left are: claims compare these.
func (o *Offer) Served(r Requirement) (text string, ok bool) {
	all := *o
	all.Queues, all.Group, all.TimeLeft = []QueueShare{{Queue: r.Queue}}, "", 0
	if !Serves(&all, r) {
		return "", false
	}
	whole := CapacitiesOf(o.Resources)
	request := slices.DeleteFunc(slices.Clone(r.Resources), func(all Amounts) bool { return whole.without(all) == nil })
	return r.MinTime.String() + Separator + request.Part(), true
}
