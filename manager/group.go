package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// A GroupStatus is the state of a group.
type GroupStatus struct {
	Counts  tdf.Counts // the number of tasks in each state, counted at one moment
	Closed  bool       // no task can be opened in the group
	Decided bool       // a step has decided the completion of the group, so the group cannot be extended
	Since   time.Time  // when the group was closed or decided; zero if it is not closed
}

// Complete reports whether the group is closed, and all of its tasks are finished. After a retry, a group is no longer
// complete until the retried tasks have finished.
func (s GroupStatus) Complete() bool { return s.Closed && s.Counts.Unfinished() == 0 }

// GroupStatus returns the state of a group. If the group has no tasks, all counts are 0, and the group is not closed.
func (m *Manager) GroupStatus(ctx context.Context, group string) (GroupStatus, error) {
	if _, err := scopeOf([]string{group}); err != nil {
		return GroupStatus{}, fmt.Errorf("read group: %w", err)
	}
	mark, err := m.store.GroupMark(ctx, group) // before the counts, so that no task can be opened between the two
	if err != nil {
		return GroupStatus{}, err
	}
	counts, err := m.store.Counts(ctx, group)
	return statusOf(counts, mark), err
}

func statusOf(counts tdf.Counts, mark redisstate.Mark) GroupStatus {
	return GroupStatus{
		Counts: counts, Closed: mark.Mark != task.GroupOpen, Decided: mark.Mark == task.GroupDecided,
		Since: mark.Since.Std(),
	}
}

// CloseGroup closes a group (docs/lifecycle.md, "Closed groups"): no task can be opened in it, until
// [Manager.ExtendGroup] opens the group again. Retries stay possible. If the group is already closed, nothing changes.
// If it has no tasks, the error wraps [tdf.ErrGroupEmpty]. When the last task of a closed group is removed, the group
// is no longer closed.
func (m *Manager) CloseGroup(ctx context.Context, group string) error {
	if err := m.store.CloseGroup(ctx, group); err != nil {
		return fmt.Errorf("close group: %w", err)
	}
	return nil
}

// BeginExtension ends openings with [Manager.OpenRest] in a group. Call it before you read which tasks the group has,
// to open the missing ones. If the group is closed, nothing changes. If it has no tasks, the error wraps
// [tdf.ErrGroupEmpty].
func (m *Manager) BeginExtension(ctx context.Context, group string) error {
	if err := m.store.BeginExtension(ctx, group); err != nil {
		return fmt.Errorf("extend group: %w", err)
	}
	return nil
}

// OpenExtending opens tasks like Open, in a group that the caller extends. If the group is closed, as at first or when
// another extension of the group has ended, OpenExtending opens it again. Several definitions need unique keys, because
// it may send a definition twice. If a step has decided the group's completion, the error wraps [tdf.ErrGroupDecided].
func (m *Manager) OpenExtending(ctx context.Context, definitions ...Definition) ([]*Task, error) {
	var all []*Task
	known := map[int64]bool{}
	for {
		tasks, err := m.Open(ctx, definitions...)
		for _, t := range tasks {
			if !known[t.ID] {
				known[t.ID] = true
				all = append(all, t)
			}
		}
		closed := &tdf.GroupError{}
		if !errors.As(err, &closed) || !errors.Is(err, tdf.ErrGroupClosed) {
			return all, err
		}
		if err := m.ExtendGroup(ctx, closed.Group); err != nil {
			return all, err
		}
	}
}

// ExtendGroup opens a closed group again, so that tasks can be opened in it. If the group is not closed, nothing
// changes. If a step has decided its completion, the error wraps [tdf.ErrGroupDecided].
func (m *Manager) ExtendGroup(ctx context.Context, group string) error {
	if err := m.store.ExtendGroup(ctx, group); err != nil {
		return fmt.Errorf("extend group: %w", err)
	}
	return nil
}
