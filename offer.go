package tdf

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
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
	TimeLeft Seconds

	// Group is the group of the tasks that the worker claims, if they have the property by_group; "" means the tasks of
	// all groups, and those without a group.
	Group string
}

// runs reports whether the worker can run a partition's tasks. If handler is "", the worker must fetch programs.
// Otherwise it needs this handler.
func (o *Offer) runs(handler string) bool {
	if handler == "" {
		return o.Programs
	}
	return o.Anything || slices.Contains(o.Handlers, handler)
}

// PartitionTags returns the Tags as the names of partitions have them.
func (o *Offer) PartitionTags() []string { return partOfTags(o.Tags) }

// PartitionGroup returns the Group as the names of partitions have it.
func (o *Offer) PartitionGroup() string { return partOfGroup(o.Group) }

// A QueueShare is a queue that a worker serves.
type QueueShare struct {
	Queue string
	// Weight is the queue's share of the worker's rounds, compared with the weights of the other queues. If no queue
	// has a weight above 0, the worker takes a task of a queue only if the queues before it have no due tasks.
	Weight int
}

// MaxWeight is the largest weight of a queue.
const MaxWeight = 1000

// String returns the text from which [ParseQueueShare] makes the same QueueShare.
func (s QueueShare) String() string {
	if s.Weight == 0 {
		return s.Queue
	}
	return s.Queue + ":" + strconv.Itoa(s.Weight)
}

// ParseQueueShare reads a queue and its weight, such as "crawl:3". Without a weight, the weight is 0.
func ParseQueueShare(s string) (QueueShare, error) {
	name, weight, weighted := strings.Cut(s, ":")
	q := QueueShare{Queue: name}
	if err := CheckLabel("queues", name); err != nil {
		return q, err
	}
	if !weighted {
		return q, nil
	}
	n, err := strconv.Atoi(weight)
	if err != nil || n < 1 || n > MaxWeight {
		return q, invalidProperty("queues", "the weight %q of queue %s is not a number from 1 to %d", weight, name,
			MaxWeight)
	}
	q.Weight = n
	return q, nil
}

// Matches reports whether the worker may claim the tasks of a partition.
func (o *Offer) Matches(p Partition) bool {
	serves := func(s QueueShare) bool { return s.Queue == p.Queue }
	switch {
	case !slices.ContainsFunc(o.Shares(), serves):
		return false
	case !o.runs(p.Handler), o.Group != "" && o.Group != p.Group, !o.fits(p.Resources):
		return false
	case o.TimeLeft > 0 && p.MinTime > o.TimeLeft:
		return false
	}
	return !slices.ContainsFunc(p.Tags, func(tag string) bool { return !slices.Contains(o.Tags, tag) })
}

// fits reports whether a task with this request fits when no other task runs.
func (o *Offer) fits(r ResourceRequest) bool {
	if r == nil {
		return o.Resources == nil || o.Resources.Of(ResourceCPUs) > 0
	}
	_, alternative := CapacitiesOf(o.Resources).Without(r)
	return alternative >= 0
}

// Shares returns the queues that the worker serves: those of the offer, or [DefaultQueue].
func (o *Offer) Shares() []QueueShare {
	if len(o.Queues) == 0 {
		return []QueueShare{{Queue: DefaultQueue}}
	}
	return o.Queues
}

// Turns decides which queue a worker serves first, so that each queue gets its share of the worker's rounds. The zero
// value is ready to use.
//
// For each queue, Turns adds up the claimed tasks, divided by the weight of the queue. The queue with the lowest sum
// comes first. A queue without due tasks does not catch up later.
type Turns struct{ served map[string]float64 }

// Order returns the shares in the order in which the worker serves the queues next. Shares without weights keep their
// order.
func (t *Turns) Order(shares []QueueShare) []QueueShare {
	if !weighted(shares) {
		return shares
	}
	ordered := slices.Clone(shares)
	slices.SortStableFunc(ordered, func(a, b QueueShare) int {
		return cmp.Compare(t.served[a.Queue], t.served[b.Queue])
	})
	return ordered
}

// Record adds the numbers of claimed tasks. The queues and these numbers are in the order in which the claim served the
// queues.
func (t *Turns) Record(shares []QueueShare, queues []string, claimed []int) {
	if !weighted(shares) {
		return
	}
	if t.served == nil {
		t.served = map[string]float64{}
	}
	first := slices.IndexFunc(claimed, func(n int) bool { return n > 0 })
	if first < 0 || first >= len(queues) {
		return
	}
	least := t.served[queues[first]]
	for _, s := range shares {
		if !slices.Contains(queues[first:], s.Queue) { // it has no due tasks, or is paused
			t.served[s.Queue] = max(t.served[s.Queue], least)
		}
	}
	for i, n := range claimed[:min(len(claimed), len(queues))] {
		t.served[queues[i]] += float64(n) / weightOf(shares, queues[i])
	}
}

func weighted(shares []QueueShare) bool {
	return slices.ContainsFunc(shares, func(s QueueShare) bool { return s.Weight > 0 })
}

func weightOf(shares []QueueShare, queue string) float64 {
	i := slices.IndexFunc(shares, func(s QueueShare) bool { return s.Queue == queue })
	if i < 0 {
		return 1
	}
	return float64(max(shares[i].Weight, 1))
}
