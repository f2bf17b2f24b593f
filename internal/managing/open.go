package managing

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
)

// ErrPast is the error for a task that would expire at once.
var ErrPast = task.NewError(task.CodeConflict,
	"its end_before or claim_before is past, so the task would expire at once")

// MustExtend reports whether an error of OpenFirst or OpenRest means that another call extends the group, or has done
// so.
func MustExtend(err error) bool {
	return errors.Is(err, redisstate.ErrGroupExtended) || errors.Is(err, task.ErrGroupClosed)
}

// OpenFirst opens the first tasks of a new group. If the group already has a task in any state, it opens none, and the
// error wraps [redisstate.ErrGroupTaken]. If the tasks need several steps, and the group is extended in between, the
// error wraps [redisstate.ErrGroupExtended]. Open more tasks of the group with [Manager.OpenRest].
func (m *Manager) OpenFirst(ctx context.Context, definitions ...task.Definition) ([]redisstate.Opened, error) {
	if _, err := OneGroup(definitions); err != nil {
		return nil, err
	}
	return m.openIf(ctx, redisstate.NewGroup, definitions)
}

// OpenRest opens further tasks in a group whose first tasks [Manager.OpenFirst] has opened. If another call has begun
// to extend the group meanwhile, OpenRest opens no task, and the error wraps [redisstate.ErrGroupExtended]: the other
// call may have opened the same tasks.
func (m *Manager) OpenRest(ctx context.Context, definitions ...task.Definition) ([]redisstate.Opened, error) {
	return m.openIf(ctx, redisstate.Unextended, definitions)
}

// BeginExtension ends openings with [Manager.OpenRest] in a group. Call it before you read which tasks the group has,
// to open the missing ones. If the group is closed, nothing changes. If it has no tasks, the error wraps
// [task.ErrGroupEmpty].
func (m *Manager) BeginExtension(ctx context.Context, group string) error {
	if err := m.Store.Groups.BeginExtension(ctx, group); err != nil {
		return fmt.Errorf("extend group: %w", err)
	}
	return nil
}

// OpenExtending opens tasks in a group that the caller extends. If the group is closed, as at first or when another
// extension of the group has ended, OpenExtending opens it again. Several definitions need unique keys, because it may
// send a definition twice. If a step has decided the group's completion, the error wraps [task.ErrGroupDecided].
func (m *Manager) OpenExtending(ctx context.Context, definitions ...task.Definition) ([]redisstate.Opened, error) {
	var all []redisstate.Opened
	known := map[int64]bool{}
	for {
		opened, err := m.Open(ctx, definitions...)
		for _, o := range opened {
			if !known[o.ID] {
				known[o.ID] = true
				all = append(all, o)
			}
		}
		closed := &task.GroupError{}
		if !errors.As(err, &closed) || !errors.Is(err, task.ErrGroupClosed) {
			return all, err
		}
		if err := m.ExtendGroup(ctx, closed.Group); err != nil {
			return all, err
		}
	}
}

// ExtendGroup opens a closed group again.
func (m *Manager) ExtendGroup(ctx context.Context, group string) error {
	if err := m.Store.Groups.ExtendGroup(ctx, group); err != nil {
		return fmt.Errorf("extend group: %w", err)
	}
	return nil
}

// Open opens tasks, as package manager's Open does. It returns those that are open, with the existing ones.
func (m *Manager) Open(ctx context.Context, definitions ...task.Definition) ([]redisstate.Opened, error) {
	return m.openIf(ctx, nil, definitions)
}

// openIf opens tasks. on returns the condition about the group of the first task; nil is none.
func (m *Manager) openIf(ctx context.Context, on func(group string) redisstate.Condition, definitions []task.Definition,
) ([]redisstate.Opened, error) {
	all, err := m.Prepare(ctx, on != nil, definitions)
	if err != nil {
		return nil, fmt.Errorf("open tasks: %w", err)
	}
	var condition redisstate.Condition
	if on != nil && len(all) > 0 {
		condition = on(all[0].Group)
	}
	opened, err := m.Send(ctx, condition, all)
	if err != nil {
		err = fmt.Errorf("open tasks: %w", err)
	}
	return slices.DeleteFunc(opened, func(o redisstate.Opened) bool { return o.ID == 0 }), err
}

// Prepare returns the properties of new tasks, or an error if Redis would open tasks that it must not. For ofGroup, see
// [Manager.CheckEnds].
func (m *Manager) Prepare(ctx context.Context, ofGroup bool, definitions []task.Definition) ([]task.Properties, error) {
	all, err := m.Scatter(ctx, m.Properties(definitions))
	if err == nil && !conn.InRequest(ctx) { // a repeated request must get the same tasks
		err = m.CheckEnds(ctx, ofGroup, all)
	}
	if err != nil {
		return nil, err
	}
	return all, dependencies.Check(ctx, m.Store, all)
}

// OneGroup returns the group that all definitions name.
func OneGroup(definitions []task.Definition) (string, error) {
	if len(definitions) == 0 {
		return "", task.NewError(task.CodeInvalid, "open group: no definitions; a group begins with its first task")
	}
	group := definitions[0].Group
	for i := range definitions {
		if g := definitions[i].Group; g != group || g == "" {
			return "", task.NewError(task.CodeInvalid, fmt.Sprintf(
				"open group: definition %d has the group %q and the first one %q; want one group in all of them, and "+
					`not ""`, i, g, group))
		}
	}
	return group, nil
}

// CheckAll returns an error if tasks cannot be opened, whatever the time.
func (m *Manager) CheckAll(ctx context.Context, all []task.Properties) error {
	if err := task.ValidateAll(all); err != nil {
		return err
	}
	if err := dependencies.Check(ctx, m.Store, all); err != nil {
		return err
	}
	return m.Store.CheckNamed(ctx, all)
}

// CheckEnds returns an error if a task would expire at once. Invalid tasks have another error. If the caller opens a
// new group, ofGroup is true: if the group has tasks, an earlier call may have opened it in time, so there is no error.
func (m *Manager) CheckEnds(ctx context.Context, ofGroup bool, all []task.Properties) error {
	if !slices.ContainsFunc(all, func(d task.Properties) bool { return d.OpenUntil() < task.Never }) {
		return nil
	}
	now, err := m.Store.Now(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].OpenUntil() > now || all[i].Validate() != nil {
			continue
		}
		if group := all[0].Group; ofGroup && group != "" {
			if counts, err := m.Store.Counts(ctx, group); err != nil || counts.Total() > 0 {
				return err
			}
		}
		return fmt.Errorf("task %d of %d: %w", i+1, len(all), ErrPast)
	}
	return nil
}

// Send opens tasks, with those of concurrent callers.
func (m *Manager) Send(ctx context.Context, on redisstate.Condition, all []task.Properties,
) ([]redisstate.Opened, error) {
	if on == "" && redisstate.OneOpen(all) {
		return m.opens.Do(ctx, all)
	}
	return m.Store.OpenAll(ctx, m.Name, on, all...)
}

// Properties returns the properties of new tasks, with defaults for the fields that a definition does not set.
func (m *Manager) Properties(definitions []task.Definition) []task.Properties {
	all := make([]task.Properties, len(definitions))
	for i := range definitions {
		all[i] = m.Config.TaskDefaults
		definitions[i].Fill(&all[i])
	}
	return all
}

// Scatter adds the random offsets of add_random_start_offset (docs/configuration.md, "[task_defaults]"). An offset is
// less than a second. It is added to start_after. If start_after is past, the offset is added to the current time.
func (m *Manager) Scatter(ctx context.Context, all []task.Properties) ([]task.Properties, error) {
	if !m.Config.AddRandomStartOffset || len(all) == 0 {
		return all, nil
	}
	if err := task.ValidateAll(all); err != nil {
		return nil, err
	}
	now, err := m.Store.Now(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.Clone(all)
	for i := range all {
		d := &all[i]
		start := max(d.StartAfter, now).Add(task.Seconds(rand.IntN(1000)) / 1000)
		if start < d.OpenUntil() { // with a later start, the task would never run
			d.StartAfter = start
		}
	}
	return all, nil
}
