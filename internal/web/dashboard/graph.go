package dashboard

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// A graph shows what a task waits for, what waits for the task, and what the task has opened.
type graph struct{ Before, After, Opened neighbours }

// Neighbours are tasks and campaigns on one side of a task.
type neighbours struct {
	Nodes []node
	More  int64  // how many are not shown
	All   string // the address of their list, or "" if it would be too long
}

// A node is a task or a campaign.
type node struct {
	Text, Link   string
	State, Class string // "" if unknown
	Any          bool   // the dependency may end in any way
	Group        bool   // it waits for the whole campaign of the task
}

// Bounds of a graph.
const (
	shownNeighbours = 20   // tasks on each side
	longestAddress  = 2000 // of a list, in bytes
)

// graphOf returns the graph of a task, or nil if nothing waits for anything.
func (v *visit) graphOf(ctx context.Context, of *place, t *manager.Task) (*graph, error) {
	var g graph
	if err := v.addBefore(ctx, of, t, &g.Before); err != nil {
		return nil, err
	}
	found, err := of.admin.Dependents(ctx, t, v.owner, shownNeighbours)
	if err != nil {
		return nil, err
	}
	for _, x := range found.Tasks {
		g.After.Nodes = append(g.After.Nodes, nodeOf(of, x.Task, x.Any, x.Group))
	}
	if n := found.Total - int64(min(len(found.IDs), shownNeighbours)); n > 0 {
		g.After.More, g.After.All = n, listOf(of, found.IDs)
	}
	if err := v.addOpened(ctx, of, t, &g.Opened); err != nil {
		return nil, err
	}
	if len(g.Before.Nodes)+len(g.After.Nodes)+len(g.Opened.Nodes) == 0 && g.After.More == 0 {
		return nil, nil
	}
	return &g, nil
}

// addOpened adds the tasks that the rounds of a task have opened.
func (v *visit) addOpened(ctx context.Context, of *place, t *manager.Task, to *neighbours) error {
	var shown []int64
	var all int64
	var ranges []string
	for i := range t.Rounds {
		r := t.Rounds[i].FollowUps
		if r.First == 0 {
			continue
		}
		for id := r.First; id <= r.Last && len(shown) < shownNeighbours; id++ {
			shown = append(shown, id)
		}
		all += r.Last - r.First + 1
		ranges = append(ranges, fmt.Sprintf("%s-%d", of.taskName(r.First), r.Last))
	}
	err := v.addTasks(ctx, of, shown, nil, to)
	if to.More = all - int64(len(shown)); to.More > 0 {
		to.All = listIn(strings.Join(ranges, " "))
	}
	return err
}

func nodeOf(of *place, t *manager.Task, anyOutcome, group bool) node {
	n := nodeOfID(of, t.ID, anyOutcome)
	n.State, n.Class, n.Group = format.StateText(t), outcomeClass(t), group
	return n
}

func nodeOfID(of *place, id int64, anyOutcome bool) node {
	return node{Text: "Task " + of.taskName(id), Link: TaskAddress(of.taskName(id)), Any: anyOutcome}
}

// addBefore adds what a task waits for.
func (v *visit) addBefore(ctx context.Context, p *place, t *manager.Task, to *neighbours) error {
	var all []int64
	anyOutcome := map[int64]bool{}
	for i, of := range []*manager.Dependencies{t.After, t.AfterAny} {
		if of == nil {
			continue
		}
		if of.Group != "" {
			n := node{Text: "Campaign " + of.Group, Link: CampaignAddress(of.Group), Any: i > 0}
			if task.OwnsName(v.owner, of.Group) {
				status, err := p.manager.GroupStatus(ctx, of.Group)
				if err != nil {
					return err
				}
				n.State, n.Class = stateOf(status), string(task.Running)
				if status.Complete() {
					n.Class = string(task.Succeeded)
				}
			}
			to.Nodes = append(to.Nodes, n)
		}
		for _, id := range of.Tasks {
			anyOutcome[id] = i > 0
		}
		all = append(all, of.Tasks...)
	}
	shown := all[:min(len(all), shownNeighbours)]
	err := v.addTasks(ctx, p, shown, anyOutcome, to)
	if to.More = int64(len(all) - len(shown)); to.More > 0 {
		to.All = listOf(p, all)
	}
	return err
}

// addTasks adds tasks with their states, as far as the user may see them.
func (v *visit) addTasks(ctx context.Context, of *place, shown []int64, anyOutcome map[int64]bool,
	to *neighbours,
) error {
	if len(shown) == 0 {
		return nil
	}
	known := map[int64]*manager.Task{}
	for other, err := range of.manager.List(ctx, v.own(manager.Query{IDs: shown})) {
		if err != nil {
			return err
		}
		known[other.ID] = other
	}
	for _, id := range shown {
		n := nodeOfID(of, id, anyOutcome[id])
		if other := known[id]; other != nil {
			n = nodeOf(of, other, n.Any, false)
		}
		to.Nodes = append(to.Nodes, n)
	}
	return nil
}

// listOf returns the address of a list of tasks, or "" if it would be too long.
func listOf(of *place, ids []int64) string {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	var text strings.Builder
	for from := 0; from < len(ids) && text.Len() < longestAddress; {
		to := from
		for to+1 < len(ids) && ids[to+1] == ids[to]+1 {
			to++
		}
		fmt.Fprintf(&text, " %s", of.taskName(ids[from]))
		if to > from {
			fmt.Fprintf(&text, "-%d", ids[to])
		}
		from = to + 1
	}
	return listIn(text.String()[1:])
}

// listIn returns the address of the tasks with these ids and ranges of ids, or "" if it would be too long.
func listIn(ranges string) string {
	if len(ranges) >= longestAddress {
		return ""
	}
	return Base + "/tasks?" + url.Values{"id": {ranges}}.Encode()
}
