package manager

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/limits"
)

// A Pause says what is paused, by whom, and since when.
type Pause struct {
	tdf.Pausable
	By    string
	Since time.Time
}

// String returns a text such as "group=night, by alice since 2030-01-01 00:00:00 +0000 UTC".
func (p Pause) String() string { return fmt.Sprintf("%v, by %s since %v", p.Pausable, p.By, p.Since) }

// Pauses are what is paused in a namespace, and what a server will pause (docs/lifecycle.md, "Pausing").
type Pauses struct{ m *Manager }

// Pauses returns the pauses of the namespace. It makes no call.
func (m *Manager) Pauses() Pauses { return Pauses{m} }

// Begin makes workers claim no tasks of queues, groups, or the whole namespace. When Begin returns, no worker claims
// such a task any more. Running tasks go on. [Pauses.All] shows the manager's name. Pausing something that is
// already paused changes nothing.
//
// If the field Failures of a Pausable is above 0, a server pauses the group when this number of its tasks have failed
// or timed out. [Pauses.Halts] shows the group until then.
//
// The error is a *[tdf.PropertyError] if the name of a queue or group is invalid.
func (p Pauses) Begin(ctx context.Context, what ...tdf.Pausable) error {
	_, err := p.m.in().Store.Limits.Pause(ctx, p.m.in().Name, what...)
	return err
}

// End ends pauses, and the halts of their groups: a server pauses these groups no more after failures. The tasks have
// kept their order.
func (p Pauses) End(ctx context.Context, what ...tdf.Pausable) error {
	halts, err := p.m.in().Store.Limits.Halts(ctx)
	if err != nil {
		return err
	}
	for _, h := range halts {
		if slices.Contains(what, tdf.Pausable{Group: h.Group}) {
			what = append(slices.Clip(what), h.Pausable)
		}
	}
	_, err = p.m.in().Store.Limits.Resume(ctx, p.m.in().Name, what...)
	return err
}

// All returns what is paused now, ordered by name.
func (p Pauses) All(ctx context.Context) ([]Pause, error) {
	return pauses(p.m.in().Store.Limits.Paused(ctx))
}

// Halts returns the groups that a server pauses when some of their tasks have failed, ordered by name.
func (p Pauses) Halts(ctx context.Context) ([]Pause, error) {
	return pauses(p.m.in().Store.Limits.Halts(ctx))
}

func pauses(paused []limits.Pausing, err error) ([]Pause, error) {
	var all []Pause
	for _, p := range paused {
		all = append(all, Pause{p.Pausable, p.By, p.Since.Std()})
	}
	return all, err
}
