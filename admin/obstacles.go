package admin

import (
	"context"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
)

// An Obstacle is a reason why some open tasks do not start or cannot succeed until a user does something.
type Obstacle struct {
	Text string `json:"text"`
	Fix  string `json:"fix"`
}

// Bounds of the search for obstacles.
const (
	mostObstacles   = 5   // of each kind
	sampledFew      = 50  // the number of open tasks with the lowest ids, and also of those with the highest ids, while no program is paused
	sampledKeys     = 50  // limit keys
	sampledWaiting  = 100 // tasks that wait for others
	sampledProperty = 100 // different pairs of queue and group
)

// An openSample holds what a sample of the watched open tasks has in common.
type openSample struct {
	at         tdf.Time
	programs   map[string]bool
	partitions []string
	placed     []tdf.Properties // one task for each queue and group
	keys       []string         // limit keys
	waiting    []int64          // ids of tasks that wait for others
	obstacles  []Obstacle
}

// readOpen reads two samples of a group's open tasks: the tasks with the lowest ids, and the tasks with the highest ids. Each
// sample has at most the given number of tasks.
func readOpen(ctx context.Context, s store, group string, most int) (o openSample, err error) {
	o.programs = map[string]bool{}
	for _, oldest := range []bool{false, true} {
		page, err := listing.Find(ctx, s, listing.Query{Group: group, States: []tdf.State{tdf.Open}, OldestFirst: oldest}, "", most)
		if err != nil {
			return o, err
		}
		for _, t := range page.Tasks {
			o.add(t)
		}
	}
	return o, nil
}

func (o *openSample) add(t *tdf.Task) {
	o.programs[t.Program] = true
	if t.Waits() {
		if len(o.waiting) < sampledWaiting {
			o.waiting = append(o.waiting, t.ID)
		}
		return // the other obstacles matter when its dependencies have ended
	}
	if name := t.Partition().String(); !slices.Contains(o.partitions, name) {
		o.partitions = append(o.partitions, name)
	}
	if t.LimitKey != "" && len(o.keys) < sampledKeys && !slices.Contains(o.keys, t.LimitKey) {
		o.keys = append(o.keys, t.LimitKey)
	}
	known := func(d tdf.Properties) bool { return d.Queue == t.Queue && d.Group == t.Group }
	if len(o.placed) < sampledProperty && !slices.ContainsFunc(o.placed, known) {
		o.placed = append(o.placed, t.Properties)
	}
}

// find looks for obstacles of the sampled tasks.
func (o *openSample) find(ctx context.Context, s store, l *look, group string) error {
	if group == "" { // the sample may lack some partitions
		names, err := s.Partitions(ctx)
		if err != nil {
			return err
		}
		o.partitions = names
		for _, name := range names {
			p, _ := tdf.ParsePartition(name)
			o.placed = append(o.placed, tdf.Properties{Queue: p.Queue})
		}
	}
	o.unserved(&l.fleet)
	if err := o.firstRounds(ctx, s, l.counts, group); err != nil {
		return err
	}
	for _, step := range []func(context.Context, store) error{o.paused, o.limited, o.unclosed} {
		if err := step(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// obstacle adds an obstacle, unless there are many of its kind. The argument n counts them.
func (o *openSample) obstacle(n *int, text, fix string) {
	if *n++; *n <= mostObstacles {
		o.obstacles = append(o.obstacles, Obstacle{text, fix})
	}
}

func (o *openSample) unserved(f *fleet) {
	if f.count().alive == 0 {
		return // Status.Workers says this
	}
	n := 0
	for _, name := range o.partitions {
		p, _ := tdf.ParsePartition(name)
		if text, fix := f.unserved(p); text != "" {
			o.obstacle(&n, "open tasks wait for another worker: "+text, fix)
		}
	}
}

func (o *openSample) paused(ctx context.Context, s store) error {
	pauses, err := s.Paused(ctx)
	n := 0
	for _, p := range pauses {
		held := func(d tdf.Properties) bool {
			_, holds := tdf.Paused{p.Pausable}.Holds(&d)
			return holds
		}
		if slices.ContainsFunc(o.placed, held) {
			o.obstacle(&n, fmt.Sprintf("%s: paused by %s", p.Text(), p.By), "end the pause")
		}
	}
	return err
}

func (o *openSample) limited(ctx context.Context, s store) error {
	if len(o.keys) == 0 {
		return nil
	}
	uses, err := s.LimitUses(ctx, o.keys...)
	n := 0
	for _, u := range uses {
		if u.Limited && u.Limit.AtMost == 0 {
			o.obstacle(&n, fmt.Sprintf("the limit of key %q is 0", u.Key), "raise the limit")
		}
	}
	return err
}

func (o *openSample) unclosed(ctx context.Context, s store) error {
	if len(o.waiting) == 0 {
		return nil
	}
	groups, err := s.OpenGroupsOf(ctx, o.waiting)
	n := 0
	for _, group := range groups {
		o.obstacle(&n, fmt.Sprintf("tasks wait for campaign %s, which is not closed", group), "close the campaign when it has all of its tasks")
	}
	return err
}
