package admin

import (
	"context"
	"slices"
	"time"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/task"
)

// Bounds of the search for obstacles.
const (
	// the number of open tasks with the lowest ids, and also of those with the highest ids, while no program is held or
	// slow
	sampledFew      = 50
	sampledKeys     = 50  // limit keys
	sampledWaiting  = 100 // tasks that wait for others
	sampledProperty = 100 // different pairs of queue and group
)

// An openSample holds what a sample of the watched open tasks has in common.
type openSample struct {
	at           task.Time
	programs     map[string]bool
	requirements []string
	placed       []task.Properties // one task for each queue and group
	keys         []string          // limit keys
	waiting      []int64           // ids of tasks that wait for others
	obstacles    []Fact
}

// readOpen reads two samples of a group's open tasks: the tasks with the lowest ids, and the tasks with the highest
// ids. Each sample has at most the given number of tasks.
func readOpen(ctx context.Context, s store, group string, most int) (o openSample, err error) {
	o.programs = map[string]bool{}
	for _, order := range []task.Order{task.NewestFirst, task.OldestFirst} {
		page, err := listing.Find(ctx, s, task.Query{Group: group, States: []task.State{task.Open}, Order: order}, "",
			most)
		if err != nil {
			return o, err
		}
		for _, t := range page.Tasks {
			o.add(t)
		}
	}
	return o, nil
}

func (o *openSample) add(t *task.Task) {
	o.programs[t.Program] = true
	if t.Waits() {
		if len(o.waiting) < sampledWaiting {
			o.waiting = append(o.waiting, t.ID)
		}
		return // the other obstacles matter when its dependencies have ended
	}
	if name := t.Requirement().String(); !slices.Contains(o.requirements, name) {
		o.requirements = append(o.requirements, name)
	}
	if t.LimitKey != "" && len(o.keys) < sampledKeys && !slices.Contains(o.keys, t.LimitKey) {
		o.keys = append(o.keys, t.LimitKey)
	}
	known := func(d task.Properties) bool { return d.Queue == t.Queue && d.Group == t.Group }
	if len(o.placed) < sampledProperty && !slices.ContainsFunc(o.placed, known) {
		o.placed = append(o.placed, t.Properties)
	}
}

// find looks for obstacles of the sampled tasks.
func (o *openSample) find(ctx context.Context, s store, l *look, group string) error {
	if group == "" { // the sample may lack some requirements
		names, err := s.Waiting(ctx)
		if err != nil {
			return err
		}
		o.requirements = names
		for _, name := range names {
			p, _ := class.ParseRequirement(name)
			o.placed = append(o.placed, task.Properties{Queue: p.Queue})
		}
	}
	now := snapshot{fleet: l.fleet}
	var uses []task.LimitUse
	var open []string
	err := readings(
		func() error { return now.readRoom(ctx, s) },
		func() (err error) { now.paused, err = s.Paused(ctx); return err },
		func() (err error) {
			if len(o.keys) > 0 {
				uses, err = s.LimitUses(ctx, o.keys...)
			}
			return err
		},
		func() (err error) {
			if len(o.waiting) > 0 {
				open, err = s.OpenGroupsOf(ctx, o.waiting)
			}
			return err
		},
	)
	if err != nil {
		return err
	}
	o.report(now.unservedOf(o.requirements))
	if err := o.firstRounds(ctx, s, l.counts, group); err != nil {
		return err
	}
	o.report(now.pausesOf(o.placed...))
	o.report(zeroLimits(uses))
	if fact, are := unclosed(open); are {
		o.obstacles = append(o.obstacles, fact)
	}
	if fact, waits := now.memoryWait(); waits {
		o.obstacles = append(o.obstacles, fact)
	}
	return nil
}

// report adds the first obstacles of one kind.
func (o *openSample) report(all []Fact) {
	o.obstacles = append(o.obstacles, all[:min(len(all), mostNamed)]...)
}

func zeroLimits(uses []task.LimitUse) (facts []Fact) {
	for _, u := range uses {
		if fact, zero := zeroLimit(u); zero {
			facts = append(facts, fact)
		}
	}
	return facts
}

// sameFailures is the number of rounds that must have failed in the same way before firstRounds reports them.
const sameFailures = 20

// firstTasks limits how many tasks are read to compare their failures.
var firstTasks = listing.Bounds{Time: 100 * time.Millisecond, Tasks: 200, Bytes: 4 << 20}

// firstRounds reports that the first rounds of a group all failed in the same way. Most likely, the program or its
// input is wrong, and all other tasks will fail, too.
func (o *openSample) firstRounds(ctx context.Context, s store, counts task.Counts, group string) error {
	if group == "" || counts[task.Succeeded]+counts[task.Archived] > 0 {
		return nil
	}
	first := task.Query{Group: group, Order: task.OldestFirst, States: []task.State{
		task.Open, task.Running, task.Executed,
		task.Failed, task.TimedOut,
	}}
	found, err := failures(ctx, s, first, "", firstTasks)
	if err != nil || len(found.Groups) != 1 || found.Groups[0].Rounds < sameFailures {
		return err
	}
	text := "no task has succeeded, and the first rounds all failed in the same way: " + found.Groups[0].How
	if line := found.Groups[0].Line; line != "" {
		text += ": " + line
	}
	o.obstacles = append(o.obstacles, Fact{
		Code: FactAllFail, About: group, Text: text,
		Fix: fix("pause the campaign, correct the program, and retry the failed tasks with it", StepCorrect),
	})
	return nil
}
