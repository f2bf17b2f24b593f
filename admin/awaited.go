package admin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/redisstate"
)

// Bounds of the search for groups that tasks wait for.
const (
	sampledAwaited    = 100 // groups, those with the most dependents first
	sampledDependents = 10  // tasks that wait for one of these groups
)

// vitalsOfWaits stores in v the number of tasks that wait for other tasks, and the groups that tasks wait for.
func vitalsOfWaits(ctx context.Context, r *redisstate.Store, v *vitals) (err error) {
	if v.waiting, err = r.CountWaiting(ctx); err != nil || v.waiting == 0 {
		return err
	}
	if v.awaited, err = r.MostAwaited(ctx, sampledAwaited, sampledDependents); err != nil {
		return err
	}
	v.waits, err = waitsOf(ctx, r, v.awaited)
	return err
}

// waitsOf returns for each group the groups that its open tasks wait for.
func waitsOf(ctx context.Context, s listing.Store, awaited []redisstate.AwaitedGroup) (map[string][]string, error) {
	var ids []int64
	for _, g := range awaited {
		ids = append(ids, g.Dependents...)
	}
	waits := map[string][]string{}
	stored, err := s.Read(ctx, ids, redisstate.Want{Fields: redisstate.Facts})
	for _, g := range awaited {
		for range g.Dependents {
			if len(stored) == 0 {
				return waits, err
			}
			if t := stored[0].Task; t != nil && t.Waits() && t.Group != "" && !slices.Contains(waits[t.Group], g.Group) {
				waits[t.Group] = append(waits[t.Group], g.Group)
			}
			stored = stored[1:]
		}
	}
	return waits, err
}

// cycleOf returns groups that wait for each other: each of them waits for the next one, and the last one for the first one.
// It returns nil if there are none.
func cycleOf(waits map[string][]string) []string {
	done := map[string]bool{} // groups from which no path leads into a cycle
	var path []string
	var visit func(group string) []string
	visit = func(group string) []string {
		if i := slices.Index(path, group); i >= 0 {
			return slices.Clone(path[i:])
		}
		if done[group] {
			return nil
		}
		path = append(path, group)
		for _, next := range waits[group] {
			if cycle := visit(next); cycle != nil {
				return cycle
			}
		}
		path = path[:len(path)-1]
		done[group] = true
		return nil
	}
	for _, group := range slices.Sorted(maps.Keys(waits)) {
		if cycle := visit(group); cycle != nil {
			return cycle
		}
	}
	return nil
}

// waitingTasks reports how many open tasks wait for other tasks and for limits, the groups that must be closed first, and
// groups that wait for each other.
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
		if g.Mark == tdf.GroupOpen {
			open = append(open, g.Group)
		}
	}
	if fact, are := unclosed(open); are {
		d.notice("tasks", fact)
	}
	if cycle := cycleOf(v.waits); cycle != nil {
		text := "campaigns wait for each other, so their tasks never run: " + strings.Join(append(cycle, cycle[0]), " waits for ")
		d.problem("tasks", Fact{Code: FactCampaignCycle, Text: cutText(text), Fix: fix("cancel the open tasks of one of these campaigns", StepCancelOpen)})
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
