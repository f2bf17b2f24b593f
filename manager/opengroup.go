package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// ErrGroupTaken is the error of OpenGroup if the group already has tasks.
var ErrGroupTaken = redisstate.ErrGroupTaken

// OpenGroup opens all tasks of a new group, any number of them (docs/manager.md, "Restarting"). All definitions name
// the group. If a call was interrupted, the next call with the same definitions opens the rest, also in another process
// and after any time. It returns the tasks that it has opened.
//
// If the group is complete, or has other tasks, OpenGroup opens no task, and the error wraps [ErrGroupTaken]. If an
// interrupted call had other definitions, the error wraps [ErrOtherRequest]. A complete group whose tasks were all
// removed is new again. After an interrupted call, the next call opens only the rest, even if the first tasks were
// removed: they may have run. For other errors, see [Manager.Open].
func (m *Manager) OpenGroup(ctx context.Context, definitions ...Definition) ([]*Task, error) {
	group, err := managing.OneGroup(definitions)
	if err != nil {
		return nil, err
	}
	made, err := m.openGroup(ctx, group, definitions)
	if err != nil {
		return made, fmt.Errorf("open group %q: %w", group, err)
	}
	return made, nil
}

func (m *Manager) openGroup(ctx context.Context, group string, definitions []Definition) ([]*Task, error) {
	ctx = conn.UntilConfirmed(ctx) // a repeated OpenGroup would find that the group is complete
	all, err := m.in().Scatter(ctx, m.in().Properties(definitions))
	if err != nil {
		return nil, err
	}
	if err := m.in().CheckAll(ctx, all); err != nil {
		return nil, err
	}
	if err := m.in().CheckEnds(ctx, true, all); err != nil {
		return nil, err
	}
	if _, err := task.InOrder(all); err != nil {
		return nil, err
	}
	places := func(d task.Properties) bool { return d.HasPlaces() }
	if redisstate.OpenBatch(all) < len(all) && slices.ContainsFunc(all, places) {
		return nil, task.NewError(tdf.CodeInvalid, "the tasks wait for each other (Places), so at most 250 tasks "+
			"and 4 MiB are possible; open them with OpenOnce")
	}
	g := groupOpening{m: m, group: group, record: redisstate.OpeningPrefix + group, all: all, tasks: openedTasks(all)}
	for {
		err := g.next(ctx)
		switch {
		case errors.Is(err, redisstate.ErrRecordChanged): // another call opens the same tasks
		case errors.Is(err, redisstate.ErrNoRoom) && conn.Sleep(ctx, redisstate.RoomPause):
		case err != nil:
			return g.made, err
		case g.done:
			return g.made, m.readExisting(ctx, g.made)
		}
	}
}

// A groupOpening opens a group in steps. Between the steps, a record in Redis says how many tasks are open.
type groupOpening struct {
	m             *Manager
	group, record string
	all           []task.Properties
	rest          unopened // those that are not open yet, as far as this call knows
	tasks, made   []*Task
	done          bool
}

// next opens the next tasks, in one step.
func (g *groupOpening) next(ctx context.Context) error {
	records, invalid, err := g.m.in().Stages().StageRecords(ctx, []string{g.record})
	if err = errors.Join(append(invalid, err)...); err != nil {
		return err
	}
	from := records[0]
	isNew := from.Phase == task.StageUnopened
	if err := g.skip(from); err != nil {
		return err
	}
	rest := g.rest
	n := redisstate.OpenBatch(rest.pending)
	u := redisstate.Unit{Open: rest.pending[:n:n]}
	if isNew {
		u.If = redisstate.NewGroup(g.group)
	}
	rest.drop(n)
	var to task.StageRecord
	if len(rest.pending) > 0 {
		to = task.StageRecord{Phase: task.StageOpening, Done: rest.done, Digest: rest.digest}
	}
	if from != to {
		u.Stage = &redisstate.StageChange{Stage: g.record, From: from, To: to}
	}
	outcomes, err := g.m.in().Store.Apply(ctx, g.m.in().Name, u)
	if err != nil {
		return err
	}
	if o := outcomes[0]; o.Err != nil {
		return o.RefusedWith(redisstate.ErrRecordChanged)
	}
	g.add(from.Done, outcomes[0])
	g.rest = rest
	g.done = to.Phase == task.StageUnopened
	return nil
}

// skip makes rest begin after the tasks that are open. It compares their definitions with those of this call.
func (g *groupOpening) skip(r task.StageRecord) error {
	if r.Done >= len(g.all) { // there is a record only while tasks are missing
		return otherDefinitions(fmt.Sprintf("an earlier call has opened %d tasks, and wants to open more", r.Done))
	}
	if r.Done < g.rest.done || g.rest.done == 0 { // the first step, or another call has begun again
		g.rest = unopened{pending: g.all, bytes: sizeOf(g.all)}
	}
	if g.rest.drop(r.Done - g.rest.done); g.rest.digest != r.Digest {
		return otherDefinitions(fmt.Sprintf("the %d tasks that an earlier call has opened have other definitions", r.Done))
	}
	return nil
}

// otherDefinitions says what an interrupted call has opened. It wraps [ErrOtherRequest].
type otherDefinitions string

func (e otherDefinitions) Error() string {
	return string(e) + "; pass the definitions of the earlier call in the same order, or choose another group"
}

func (otherDefinitions) Unwrap() error { return ErrOtherRequest }

// add completes the tasks that a step has opened. The first of them has the given index.
func (g *groupOpening) add(first int, o redisstate.Outcome) {
	for i, id := range o.IDs {
		t := g.tasks[first+i]
		t.setOpened(id, o.Existing != nil && o.Existing[i], func(place int) int64 { return o.IDs[place-first] })
		g.made = append(g.made, t)
	}
}
