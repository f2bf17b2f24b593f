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

// Pause makes workers claim no tasks of queues, groups, or the whole namespace. When Pause returns, no worker claims
// such a task any more. Running tasks go on. [Manager.Paused] shows the manager's name. Pausing something that is
// already paused changes nothing (docs/lifecycle.md, "Pausing").
//
// If the field Failures of a Pausable is above 0, a server pauses the group when this number of its tasks have failed
// or timed out. [Manager.Halts] shows the group until then.
//
// The error is a *[tdf.PropertyError] if the name of a queue or group is invalid.
func (m *Manager) Pause(ctx context.Context, what ...tdf.Pausable) error {
	_, err := m.store.Pause(ctx, m.name, what...)
	return err
}

// Resume ends pauses. The tasks have kept their order. A server then does not pause these groups after failures any
// more.
func (m *Manager) Resume(ctx context.Context, what ...tdf.Pausable) error {
	halts, err := m.store.Halts(ctx)
	if err != nil {
		return err
	}
	for _, h := range halts {
		if slices.Contains(what, tdf.Pausable{Group: h.Group}) {
			what = append(slices.Clip(what), h.Pausable)
		}
	}
	_, err = m.store.Resume(ctx, m.name, what...)
	return err
}

// Paused returns what is paused now, ordered by name.
func (m *Manager) Paused(ctx context.Context) ([]Pause, error) {
	return pauses(m.store.Paused(ctx))
}

// Halts returns the groups that a server pauses when some of their tasks have failed, ordered by name.
func (m *Manager) Halts(ctx context.Context) ([]Pause, error) {
	return pauses(m.store.Halts(ctx))
}

func pauses(paused []limits.Pausing, err error) ([]Pause, error) {
	var all []Pause
	for _, p := range paused {
		all = append(all, Pause{p.Pausable, p.By, p.Since.Std()})
	}
	return all, err
}
