package admin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
)

// Bounds of the search for tasks and groups that wait for each other.
const (
	sampledAwaited    = 100 // groups, those with the most dependents first
	sampledDependents = 10  // tasks that wait for one of these groups
	sampledFirst      = 100 // tasks that have waited for the longest time
	followedSteps     = 10  // from these tasks to the tasks for which they wait, and so on
	followedTasks     = 100 // tasks of one step
	sampledLinks      = 10_000
)

// vitalsOfWaits stores in v the number of tasks that wait for other tasks, and what tasks and groups wait for.
func vitalsOfWaits(ctx context.Context, r *redisstate.Store, v *vitals) (err error) {
	if v.waiting, err = dependencies.CountWaiting(ctx, r); err != nil || v.waiting == 0 {
		return err
	}
	if v.awaited, err = dependencies.MostAwaited(ctx, r, sampledAwaited, sampledDependents); err != nil {
		return err
	}
	first, err := dependencies.FirstWaiting(ctx, r, sampledFirst)
	if err != nil {
		return err
	}
	v.waits, err = waitsOf(ctx, r, first, v.awaited)
	return err
}

// A waiter is a task or a group that waits for others.
type waiter struct {
	group string // "" for a task
	id    int64
}

func (w waiter) String() string {
	if w.group != "" {
		return "campaign " + w.group
	}
	return fmt.Sprintf("task %d", w.id)
}

func compareWaiters(a, b waiter) int {
	return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.group, b.group))
}

// waitsOf returns what the given tasks and some dependents of the groups wait for. It does the same for some of the
// tasks for which these tasks wait.
func waitsOf(ctx context.Context, r *redisstate.Store, ids []int64,
	awaited []dependencies.AwaitedGroup,
) (map[waiter][]waiter, error) {
	groups := map[int64][]waiter{}
	for _, g := range awaited {
		for _, id := range g.Dependents {
			groups[id] = append(groups[id], waiter{group: g.Group})
		}
		ids = append(ids, g.Dependents...)
	}
	waits, seen, links := map[waiter][]waiter{}, map[int64]bool{}, 0
	for step := 0; step <= followedSteps && len(ids) > 0 && links < sampledLinks; step++ {
		tasks, err := dependencies.WaitingOf(ctx, r, ids, sampledLinks-links)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			seen[id] = true
		}
		ids = nil
		for _, t := range tasks {
			links += len(t.After)
			addWaits(waits, t, groups[t.ID])
			for _, id := range t.After {
				if !seen[id] && len(ids) < followedTasks {
					seen[id] = true
					ids = append(ids, id)
				}
			}
		}
	}
	return waits, nil
}

// addWaits adds the groups and tasks for which a task waits. The task's own group waits for them, too, because it is
// not complete before the task has finished.
func addWaits(waits map[waiter][]waiter, t dependencies.Waiting, groups []waiter) {
	all := slices.Clone(groups)
	for _, id := range t.After {
		all = append(all, waiter{id: id})
	}
	waits[waiter{id: t.ID}] = all
	if t.Group != "" {
		own := waiter{group: t.Group}
		waits[own] = append(waits[own], all...)
	}
}

// cycleOf returns tasks and groups that wait for each other: each of them waits for the next one, and the last one for
// the first one. It returns nil if there are none. If there are several cycles, it prefers one that has a group.
func cycleOf(waits map[waiter][]waiter) []waiter {
	done := map[waiter]bool{} // those from which no path leads into a cycle
	var path []waiter
	var visit func(w waiter) []waiter
	visit = func(w waiter) []waiter {
		if i := slices.Index(path, w); i >= 0 {
			return slices.Clone(path[i:])
		}
		if done[w] {
			return nil
		}
		path = append(path, w)
		for _, next := range waits[w] {
			if cycle := visit(next); cycle != nil {
				return cycle
			}
		}
		path = path[:len(path)-1]
		done[w] = true
		return nil
	}
	for _, w := range slices.SortedFunc(maps.Keys(waits), compareWaiters) {
		if cycle := visit(w); cycle != nil {
			return cycle
		}
	}
	return nil
}

// cycle returns a Fact if tasks and groups wait for each other.
func (v *vitals) cycle() (Fact, bool) {
	cycle := cycleOf(v.waits)
	if cycle == nil {
		return Fact{}, false
	}
	f := Fact{Code: FactTaskCycle, Fix: fix("cancel one of these tasks", StepCancel)}
	if slices.ContainsFunc(cycle, func(w waiter) bool { return w.group != "" }) {
		f.Code, f.Fix = FactCampaignCycle, fix("cancel the open tasks of one of these campaigns", StepCancelOpen)
	}
	var names []string
	for _, w := range append(cycle, cycle[0]) { // cycleOf has copied the cycle
		names = append(names, w.String())
	}
	f.Text = cutText("tasks wait for each other, so they never run: " + strings.Join(names, " waits for "))
	return f, true
}

// waitingTasks reports how many open tasks wait for other tasks and for limits, the groups that must be closed first,
// and tasks and groups that wait for each other.
func (v *vitals) waitingTasks(d *diagnoses) {
	limited := 0
	for _, u := range v.limits {
		limited += u.Waiting
	}
	if v.waiting > 0 || limited > 0 {
		d.ok("tasks", "open tasks that wait for other tasks: %d, for limits: %d", v.waiting, limited)
	}
	var open []string
	for _, g := range v.awaited {
		if g.Mark == task.GroupOpen {
			open = append(open, g.Group)
		}
	}
	if fact, are := unclosed(open); are {
		d.notice("tasks", fact)
	}
	if fact, is := v.cycle(); is {
		d.problem("tasks", fact)
	}
}

// mostText is the largest length of a text that lists names, in characters.
const mostText = 500

func cutText(text string) string {
	if short := []rune(text); len(short) > mostText {
		return fmt.Sprintf("%s…", string(short[:mostText]))
	}
	return text
}
