package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/groups"
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
	// before the counts, so that no task can be opened between the two
	mark, err := m.in().Store.Groups.GroupMark(ctx, group)
	if err != nil {
		return GroupStatus{}, err
	}
	counts, err := m.in().Store.Counts(ctx, group)
	return statusOf(counts, mark), err
}

func statusOf(counts tdf.Counts, mark groups.Mark) GroupStatus {
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
	if err := m.in().Store.Groups.CloseGroup(ctx, group); err != nil {
		return fmt.Errorf("close group: %w", err)
	}
	return nil
}

// ExtendGroup opens a closed group again, so that tasks can be opened in it. If the group is not closed, nothing
// changes. If a step has decided its completion, the error wraps [tdf.ErrGroupDecided].
func (m *Manager) ExtendGroup(ctx context.Context, group string) error {
	return m.in().ExtendGroup(ctx, group)
}
