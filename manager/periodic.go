package manager

import (
	"context"
	"errors"
	"fmt"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/periodics"
)

// A Periodic says which tasks the servers open again and again, and at which times (docs/periodic.md).
type Periodic = task.Periodic

// A PeriodicRecord is a [Periodic] with its next time and its last one.
type PeriodicRecord = task.PeriodicRecord

// ErrNoPeriodic means that there is no periodic with the name.
var ErrNoPeriodic = task.NewError(tdf.CodeNotFound, "there is no such periodic")

// Periodics are the periodics of a namespace (docs/periodic.md).
type Periodics struct{ m *Manager }

// Periodics returns the periodics of the namespace. It makes no call.
func (m *Manager) Periodics() Periodics { return Periodics{m} }

func (p Periodics) stored() periodics.Periodics { return periodics.Of(p.m.in().Store) }

// Set stores a periodic, or replaces the one with the same name. From then on, the servers open its tasks, each
// time once. It checks the tasks as Open does, and opens none of them. If the same periodic is
// stored already, nothing changes, so a manager can call Set at each start. A new schedule or zone begins anew.
// A pause, and what is known of the last time, stay.
//
// The error wraps a *[tdf.PropertyError] if the periodic or a task is invalid.
func (p Periodics) Set(ctx context.Context, periodic Periodic) error {
	tasks := p.m.in().Properties(periodic.Tasks)
	_, err := p.change(ctx, "store", periodic.Name, func(r *PeriodicRecord, now task.Time) (periodicChange, error) {
		if err := p.stored().CheckOneStep(ctx, tasks); err != nil {
			return periodicChange{}, err
		}
		stored, err := task.NewPeriodicRecord(periodic, tasks, now)
		switch {
		case err != nil:
			return periodicChange{}, err
		case r != nil:
			return periodicChange{to: r.Replaced(stored)}, nil
		}
		n, err := p.stored().CountPeriodics(ctx)
		if err == nil && n >= task.MaxPeriodics {
			err = task.NewError(tdf.CodeFull, fmt.Sprintf("there are %d already; remove some", n))
		}
		return periodicChange{to: stored}, err
	})
	return err
}

// All returns all periodics, ordered by name. If Redis has invalid ones, it also returns their errors.
func (p Periodics) All(ctx context.Context) ([]*PeriodicRecord, error) {
	texts, err := p.stored().PeriodicTexts(ctx)
	if err != nil {
		return nil, err
	}
	all, invalid := task.ParsePeriodics(texts)
	return all, errors.Join(invalid...)
}

// Get returns a periodic. If there is none with the name, the error wraps [ErrNoPeriodic].
func (p Periodics) Get(ctx context.Context, name string) (*PeriodicRecord, error) {
	r, _, err := p.read(ctx, name)
	if err == nil && r == nil {
		err = ErrNoPeriodic
	}
	if err != nil {
		return nil, fmt.Errorf("read periodic %q: %w", name, err)
	}
	return r, nil
}

func (p Periodics) read(ctx context.Context, name string) (r *PeriodicRecord, text string, err error) {
	text, err = p.stored().PeriodicText(ctx, name)
	if err != nil || text == "" {
		return nil, "", err
	}
	r, err = task.ParsePeriodic(name, text)
	return r, text, err
}

// Pause makes the servers skip the times of a periodic until [Periodics.Resume]. Tasks that are already open still run.
// The record shows the manager's name. If there is no such periodic, the error wraps [ErrNoPeriodic].
func (p Periodics) Pause(ctx context.Context, name string) error {
	_, err := p.change(ctx, "pause", name, func(r *PeriodicRecord, now task.Time) (periodicChange, error) {
		if r == nil {
			return periodicChange{}, ErrNoPeriodic
		}
		paused := *r
		if r.PausedBy == "" {
			paused.PausedBy, paused.PausedAt = p.m.in().Name, now
		}
		return periodicChange{to: &paused}, nil
	})
	return err
}

// Resume ends the pause of a periodic. The times during the pause are not missed: the next time is the first
// one from now on. If the periodic is not paused, this also holds, for example after the clock of Redis was wrong.
func (p Periodics) Resume(ctx context.Context, name string) error {
	_, err := p.change(ctx, "resume", name, func(r *PeriodicRecord, now task.Time) (periodicChange, error) {
		if r == nil {
			return periodicChange{}, ErrNoPeriodic
		}
		resumed, err := r.Resumed(now)
		return periodicChange{to: resumed}, err
	})
	return err
}

// Remove removes a periodic. The tasks that it has opened stay.
func (p Periodics) Remove(ctx context.Context, name string) error {
	text, err := p.stored().PeriodicText(ctx, name)
	if err == nil && text == "" {
		err = ErrNoPeriodic
	}
	if err != nil {
		return fmt.Errorf("remove periodic %q: %w", name, err)
	}
	return p.stored().RemovePeriodic(ctx, name)
}

// Run opens the tasks of a periodic now, also if it is paused, or if tasks of an earlier time are unfinished.
// It returns the ids of the tasks. The next time stays the same.
func (p Periodics) Run(ctx context.Context, name string) (ids []int64, err error) {
	return p.change(ctx, "run", name, func(r *PeriodicRecord, now task.Time) (periodicChange, error) {
		if r == nil {
			return periodicChange{}, ErrNoPeriodic
		}
		unfinished, err := p.stored().UnfinishedOf(ctx, r.IDs)
		return periodicChange{r.Opening("by "+p.m.in().Name, now, r.Next, unfinished), r.Properties()}, err
	})
}

// A periodicChange has a new record, and the tasks that are opened with it.
type periodicChange struct {
	to   *PeriodicRecord
	open []task.Properties
}

// change changes the record of a periodic. If another client has changed it meanwhile, it calls the function
// change again. This function gets nil if there is no periodic.
func (p Periodics) change(
	ctx context.Context, doing, name string, change func(*PeriodicRecord, task.Time) (periodicChange, error),
) ([]int64, error) {
	for {
		ids, err := p.try(ctx, name, change)
		if err != nil && !errors.Is(err, redisstate.ErrRecordChanged) {
			return ids, fmt.Errorf("%s periodic %q: %w", doing, name, err)
		}
		if err == nil {
			return ids, nil
		}
	}
}

func (p Periodics) try(
	ctx context.Context, name string, change func(*PeriodicRecord, task.Time) (periodicChange, error),
) ([]int64, error) {
	r, text, err := p.read(ctx, name)
	if err != nil {
		return nil, err
	}
	now, err := p.m.in().Store.Now(ctx)
	if err != nil {
		return nil, err
	}
	c, err := change(r, now)
	if err != nil || len(c.open) == 0 && c.to.String() == text {
		return nil, err
	}
	return p.stored().ChangePeriodic(ctx, p.m.in().Name, name, text, c.to.String(), c.open...)
}
