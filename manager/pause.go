package manager

import (
	"context"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/stdtime"
)

// A Pause says what is paused, by whom, and since when.
type Pause struct {
	tdf.Pausable
	By    string
	Since time.Time
}

// Pause makes workers claim no tasks of queues, groups, or the whole namespace. When Pause returns, no worker claims such
// a task any more. Running tasks go on. [Manager.Paused] shows the manager's name. Pausing something that is already paused
// changes nothing (docs/lifecycle.md, "Pausing").
//
// The error is a *[tdf.PropertyError] if the name of a queue or group is invalid.
func (m *Manager) Pause(ctx context.Context, what ...tdf.Pausable) error {
	_, err := m.store.Pause(ctx, m.name, what...)
	return err
}

// Resume ends pauses. The tasks have kept their order.
func (m *Manager) Resume(ctx context.Context, what ...tdf.Pausable) error {
	_, err := m.store.Resume(ctx, m.name, what...)
	return err
}

// Paused returns what is paused, ordered by name.
func (m *Manager) Paused(ctx context.Context) ([]Pause, error) {
	paused, err := m.store.Paused(ctx)
	var all []Pause
	for _, p := range paused {
		all = append(all, Pause{p.Pausable, p.By, stdtime.Time(p.Since)})
	}
	return all, err
}
