package dashboard

import (
	"context"
	"fmt"
	"net/url"

	"github.com/tdf-framework/tdf/manager"
)

// A graph shows what a task waits for, as boxes with lines between them.
type graph struct {
	Height int
	Boxes  []box
	More   int // dependencies that are not shown
}

// A box is a task or a group. A box on the left side has a line to the task.
type box struct {
	X, Y        int
	Text, Class string
	Link        string
	LineY       int // where its line ends
	Any         bool
}

// shownDependencies is the largest number of dependencies in a graph.
const shownDependencies = 12

const boxStep = 34

// graphOf returns the graph of a task, or nil if the task waits for nothing.
func (d *Dashboard) graphOf(ctx context.Context, v *visit, t *manager.Task) (*graph, error) {
	var g graph
	var ids []int64
	for _, after := range []struct {
		*manager.Dependencies
		any bool
	}{{t.After, false}, {t.AfterAny, true}} {
		if after.Dependencies == nil {
			continue
		}
		if name := after.Group; name != "" {
			g.Boxes = append(g.Boxes, box{Text: "campaign " + name, Link: Base + "/tasks?" + url.Values{"campaign": {name}}.Encode(), Any: after.any})
		}
		for _, id := range after.Tasks {
			if len(g.Boxes) >= shownDependencies {
				g.More++
				continue
			}
			ids = append(ids, id)
			g.Boxes = append(g.Boxes, box{Text: fmt.Sprintf("task %d", id), Link: fmt.Sprintf("%s/tasks/%d", Base, id), Any: after.any})
		}
	}
	if len(g.Boxes) == 0 {
		return nil, nil
	}
	states := map[string]string{}
	if len(ids) > 0 {
		for other, err := range d.manager.List(ctx, v.own(manager.Query{IDs: ids})) {
			if err != nil {
				return nil, err
			}
			states[fmt.Sprintf("task %d", other.ID)] = outcomeClass(other)
		}
	}
	g.Height = boxStep * len(g.Boxes)
	middle := g.Height / 2
	for i := range g.Boxes {
		b := &g.Boxes[i]
		b.Y, b.LineY, b.Class = boxStep*i, middle, states[b.Text]
		if b.Class != "" {
			b.Text += " " + b.Class
		}
	}
	g.Boxes = append(g.Boxes, box{X: 420, Y: middle - boxStep/2, Text: fmt.Sprintf("task %d", t.ID), Class: outcomeClass(t)})
	return &g, nil
}
