package admin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

func usesText(offered, used class.Amounts) string {
	var parts []string
	for _, a := range offered {
		some := class.Amount{Name: a.Name, Units: used.Of(a.Name)}
		parts = append(parts, fmt.Sprintf("%s %s of %s", a.Name, some.Value(), a.Value()))
	}
	return strings.Join(parts, ", ")
}

// closest returns the index of the amounts that come closest to a request: those that lack the fewest resources, and of
// these the least. It also returns what they lack. The index is -1 if all amounts are nil.
func closest(all []class.Amounts, r class.Request) (at int, least class.Amounts) {
	at = -1
	for i, amounts := range all {
		if amounts == nil {
			continue
		}
		lacks := class.CapacitiesOf(amounts).Lacking(r)
		if at < 0 || len(lacks) < len(least) || len(lacks) == len(least) && lacks.Sum() < least.Sum() {
			at, least = i, lacks
		}
	}
	return at, least
}

// lackingResources says what the live workers lack for a request, if none of them could run it even without other
// tasks.
func lackingResources(all []class.Offer, p class.Requirement) string {
	if p.Resources == nil {
		return ""
	}
	offers := make([]class.Amounts, len(all))
	for i := range all {
		offers[i] = all[i].Resources
	}
	at, lacks := closest(offers, p.Resources)
	switch {
	case at < 0:
		return "no live worker offers resources, and the task asks for " + p.Resources.String()
	case lacks == nil:
		return ""
	}
	return fmt.Sprintf("no live worker offers %v; the closest offer, %v, lacks %s", p.Resources, offers[at],
		lacksText(lacks))
}

// lacksText returns what is lacked for the request of a requirement. It says if that is rounded.
func lacksText(lacks class.Amounts) string {
	if lacks.Of(class.Memory) == 0 {
		return lacks.String()
	}
	return lacks.String() + " (requests for memory are rounded up)"
}

// freeOf returns what a worker had free at its last heartbeat, without the order in which tasks have taken it.
func freeOf(w *presence.WorkerStatus) class.Amounts {
	free := class.Amounts{}
	for _, a := range w.Offer.Resources {
		free = append(free, class.Amount{Name: a.Name, Units: max(0, a.Units-w.Used.Of(a.Name))})
	}
	return free
}

// request returns what the task takes from a worker, without the slot of a task that asks for nothing.
func (c *situation) request() class.Request {
	r := c.task.Requirement().Resources
	if r == nil {
		return class.Request{{{Name: class.CPUs, Units: class.Scale}}}
	}
	return r
}

// closestOf says which of some workers comes closest to running the task, and what it lacks now.
func (c *situation) closestOf(names []string) string {
	var free []class.Amounts
	var of []string
	for i := range c.workers {
		if w := &c.workers[i]; slices.Contains(names, w.Name) {
			free, of = append(free, freeOf(w)), append(of, w.Name)
		}
	}
	at, lacks := closest(free, c.request())
	return fmt.Sprintf("; %s comes closest, and lacks %s", of[at], lacksText(lacks))
}

// keptText says for which blocked tasks some of the named workers keep resources back.
func (c *situation) keptText(names []string) (text string) {
	for _, k := range c.kept {
		if !slices.Contains(names, k.Worker) {
			continue
		}
		of := fmt.Sprintf("task %d", k.Task)
		if k.Task == c.task.ID {
			of = "this task"
		}
		text += fmt.Sprintf("; %s has been kept for %s since %s: it keeps back what the task takes, "+
			"until its rounds that run now have ended, or for an hour", k.Worker, of, c.moment(k.Since))
	}
	return text
}
