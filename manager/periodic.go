package manager

import (
	"context"
	"errors"
	"fmt"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// A Periodic says which tasks the servers open again and again, and at which times (docs/periodic.md).
type Periodic = tdf.Periodic

// A PeriodicRecord is a [Periodic] with its next time and its last one.
type PeriodicRecord = tdf.PeriodicRecord

// ErrNoPeriodic means that there is no periodic with the name.
var ErrNoPeriodic = tdf.NewError(tdf.CodeNotFound, "there is no such periodic")

// Periodic stores a periodic, or replaces the one with the same name. From then on, the servers open its tasks, each
// time once (docs/periodic.md). It checks the tasks as Open does, and opens none of them. If the same periodic is
// stored already, nothing changes, so a manager can call Periodic at each start. A new schedule or zone begins anew. A
// pause, and what is known of the last time, stay.
//
// The error wraps a *[tdf.PropertyError] if the periodic or a task is invalid.
func (m *Manager) Periodic(ctx context.Context, p Periodic) error {
	tasks := m.properties(p.Tasks)
	if err := m.store.CheckOneStep(ctx, tasks); err != nil {
		return fmt.Errorf("store periodic %q: %w", p.Name, err)
	}
	return m.changePeriodic(ctx, "store", p.Name, func(r *PeriodicRecord, now tdf.Time) (*PeriodicRecord, error) {
		stored, err := tdf.NewPeriodicRecord(p, tasks, now)
		switch {
		case err != nil:
			return nil, err
		case r != nil:
			return r.Replaced(stored), nil
		}
		n, err := m.store.CountPeriodics(ctx)
		if err == nil && n >= tdf.MaxPeriodics {
			err = tdf.NewError(tdf.CodeFull, fmt.Sprintf("there are %d already; remove some", n))
		}
		return stored, err
	})
}

// Periodics returns all periodics, ordered by name. If Redis has invalid ones, it also returns their errors.
func (m *Manager) Periodics(ctx context.Context) ([]*PeriodicRecord, error) {
	texts, err := m.store.Periodics(ctx)
	if err != nil {
		return nil, err
	}
	all, invalid := tdf.ParsePeriodics(texts)
	return all, errors.Join(invalid...)
}

// PausePeriodic makes the servers skip the times of a periodic until [Manager.ResumePeriodic]. The tasks that are open
// already go on. The record shows the manager's name. If there is no such periodic, the error wraps [ErrNoPeriodic].
func (m *Manager) PausePeriodic(ctx context.Context, name string) error {
	return m.changeExisting(ctx, "pause", name, func(r *PeriodicRecord, now tdf.Time) (*PeriodicRecord, error) {
		if r.PausedBy != "" {
			return r, nil
		}
		paused := *r
		paused.PausedBy, paused.PausedAt = m.name, now
		return &paused, nil
	})
}

// ResumePeriodic ends the pause of a periodic. The times during the pause are not missed: the next time is the first
// one from now on. If the periodic is not paused, this also holds, for example after the clock of Redis was wrong.
func (m *Manager) ResumePeriodic(ctx context.Context, name string) error {
	return m.changeExisting(ctx, "resume", name, (*PeriodicRecord).Resumed)
}

// RemovePeriodic removes a periodic. The tasks that it has opened stay.
func (m *Manager) RemovePeriodic(ctx context.Context, name string) error {
	return m.changeText(ctx, "remove", name, func(text string) error {
		if text == "" {
			return ErrNoPeriodic
		}
		_, err := m.store.ChangePeriodic(ctx, m.name, name, text, "")
		return err
	})
}

// RunPeriodic opens the tasks of a periodic now, also if it is paused, or if tasks of an earlier time are unfinished.
// It returns the ids of the tasks. The next time stays the same.
func (m *Manager) RunPeriodic(ctx context.Context, name string) (ids []int64, err error) {
	err = m.changeText(ctx, "run", name, func(text string) error {
		r, err := existing(name, text)
		if err != nil {
			return err
		}
		now, err := m.store.Now(ctx)
		if err != nil {
			return err
		}
		unfinished, err := m.store.UnfinishedOf(ctx, r.IDs)
		if err != nil {
			return err
		}
		after := r.Opening("by "+m.name, now, r.Next, unfinished)
		ids, err = m.store.ChangePeriodic(ctx, m.name, name, text, after.String(), r.Properties()...)
		return err
	})
	return ids, err
}

// existing parses the record of a periodic.
func existing(name, text string) (*PeriodicRecord, error) {
	if text == "" {
		return nil, ErrNoPeriodic
	}
	return tdf.ParsePeriodic(name, text)
}

func (m *Manager) changeExisting(
	ctx context.Context, doing, name string, change func(*PeriodicRecord, tdf.Time) (*PeriodicRecord, error),
) error {
	return m.changePeriodic(ctx, doing, name, func(r *PeriodicRecord, now tdf.Time) (*PeriodicRecord, error) {
		if r == nil {
			return nil, ErrNoPeriodic
		}
		return change(r, now)
	})
}

// changePeriodic changes the record of a periodic. The function change gets nil if there is none.
func (m *Manager) changePeriodic(
	ctx context.Context, doing, name string, change func(*PeriodicRecord, tdf.Time) (*PeriodicRecord, error),
) error {
	return m.changeText(ctx, doing, name, func(text string) error {
		now, err := m.store.Now(ctx)
		if err != nil {
			return err
		}
		var before *PeriodicRecord
		if text != "" {
			if before, err = tdf.ParsePeriodic(name, text); err != nil {
				return err
			}
		}
		after, err := change(before, now)
		if err != nil {
			return err
		}
		if after.String() == text {
			return nil
		}
		_, err = m.store.ChangePeriodic(ctx, m.name, name, text, after.String())
		return err
	})
}

// changeText calls a function that changes the text of a record, and again if another client has changed the text
// meanwhile.
func (m *Manager) changeText(ctx context.Context, doing, name string, change func(text string) error) error {
	for {
		text, err := m.store.PeriodicText(ctx, name)
		if err == nil {
			err = change(text)
		}
		switch {
		case errors.Is(err, redisstate.ErrPeriodicChanged): // another client was faster
		case err != nil:
			return fmt.Errorf("%s periodic %q: %w", doing, name, err)
		default:
			return nil
		}
	}
}
