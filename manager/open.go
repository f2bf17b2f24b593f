package manager

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/programs"
)

// Open opens tasks and returns them in the order of the definitions. New tasks have ascending ids. They contain no
// times, because Redis sets the times.
//
// Open checks all definitions first. If a definition is invalid, Open opens no task, and the error wraps a
// *[tdf.PropertyError]. If a task would expire at once, the error wraps [ErrPast]. If a stored program does not exist,
// the error wraps [ErrNoProgram]. Open opens up to 250 tasks in one atomic step, and more tasks in several steps. After
// any other error, Open returns the tasks that it has opened.
//
// If another task holds a definition's Unique key, Open opens no task for the definition. It returns the other task
// instead, with Existing set. If any definition has a key, every task of the call is opened in a step of its own,
// unless tasks wait for each other.
//
// If tasks wait for others of the same call (Places in [Dependencies]), Open opens each task after the tasks that it
// waits for. The ids then need not ascend. If a dependency does not exist or has failed, or if tasks wait for each
// other in a cycle, Open opens no task.
func (m *Manager) Open(ctx context.Context, definitions ...Definition) ([]*Task, error) {
	return m.open(ctx, definitions)
}

// ErrOtherRequest is the error of OpenOnce if an earlier call with the same key had other definitions.
var ErrOtherRequest = conn.ErrOtherRequest

// OpenOnce opens tasks like Open, but at most once for each key. A second call with the same key and the same
// definitions opens no task that the first call has opened, also in another process. It returns the same tasks, with
// the properties of the definitions. The correlation ids may differ. Use it if an answer can be lost between you and
// your own caller. Redis keeps the key for a day after the last call.
//
// The error wraps [ErrOtherRequest] if an earlier call with the key had other definitions.
func (m *Manager) OpenOnce(ctx context.Context, key string, definitions ...Definition) ([]*Task, error) {
	same := slices.Clone(definitions)
	for i := range same {
		same[i].CorrelationID = "" // a repeated call may have an id of its own
	}
	content, err := json.Marshal(same)
	if err != nil {
		return nil, fmt.Errorf("open tasks: %w", err)
	}
	name := "once-" + digest(key)
	within, err := m.in().Store.Conn.Once(ctx, name, digest(string(content)), func() error {
		return m.checkNew(ctx, definitions)
	})
	if err != nil {
		return nil, err
	}
	tasks, err := m.open(within, definitions)
	if err != nil && len(tasks) == 0 && isRefusal(err) {
		err = errors.Join(err, m.in().Store.Conn.Unrequest(ctx, name))
	}
	return tasks, err
}

// isRefusal reports whether an error says that nothing was done.
func isRefusal(err error) bool {
	switch tdf.CodeOf(err) {
	case tdf.CodeInvalid, tdf.CodeNotFound, tdf.CodeConflict, tdf.CodeTaken, tdf.CodeForbidden, tdf.CodeFull,
		tdf.CodeTooManyRequirements:
		return true
	}
	return false
}

// checkNew returns an error if tasks with these definitions cannot be opened.
func (m *Manager) checkNew(ctx context.Context, definitions []Definition) error {
	all := m.in().Properties(definitions)
	err := m.in().CheckAll(ctx, all)
	if err == nil {
		err = m.in().CheckEnds(ctx, false, all)
	}
	if err != nil {
		return fmt.Errorf("open tasks: %w", err)
	}
	return nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// ErrNoProgram means that a new task names a stored program (redis:SHA256) that does not exist. It was never pushed, or
// it was removed. No task was opened.
var ErrNoProgram = programs.ErrNoProgram

func (m *Manager) open(ctx context.Context, definitions []Definition) (made []*Task, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open tasks: %w", err)
		}
	}()
	in := m.in()
	all, err := in.Prepare(ctx, false, definitions)
	if err != nil {
		return nil, err
	}
	var tasks []*Task
	var making sync.WaitGroup
	if len(all) < manyTasks {
		tasks = openedTasks(all)
	} else {
		making.Go(func() { tasks = openedTasks(all) }) // while Redis opens the tasks
	}
	opened, err := in.Send(ctx, "", all)
	making.Wait()
	id := func(place int) int64 { return opened[place].ID }
	for i, o := range opened {
		if o.ID > 0 {
			tasks[i].setOpened(o.ID, o.Existing, id)
			made = append(made, tasks[i])
		}
	}
	if err != nil {
		return made, err
	}
	return made, m.readExisting(ctx, made)
}

// manyTasks is the smallest number of tasks for which another goroutine is worth its cost.
const manyTasks = 32

// A newTask is a task that was just opened.
type newTask struct {
	task       Task
	round      [1]Round
	properties task.Properties
}

// stored returns the task as it stands in Redis after its opening.
func (n *newTask) stored() *task.Task {
	return &task.Task{
		ID: n.task.ID, Properties: n.properties, State: tdf.Open, PlacedIn: n.properties.FirstPlace(),
		Rounds: task.Rounds{0: {}},
	}
}

// newTasksAtOnce is the number of new tasks that share an allocation. As long as a manager keeps one of them, it keeps
// all.
const newTasksAtOnce = 16

// openedTasks returns tasks with these properties, as they are after their opening, but without ids.
func openedTasks(all []task.Properties) []*Task {
	tasks := make([]*Task, len(all))
	var room []newTask
	for i := range all {
		if len(room) == 0 {
			room = make([]newTask, min(newTasksAtOnce, len(all)-i))
		}
		room[0].set(&all[i])
		tasks[i], room = &room[0].task, room[1:]
	}
	return tasks
}

// set does the same as TaskOf for a stored task, which most managers do not need.
func (n *newTask) set(d *task.Properties) {
	n.properties = *d
	n.task = Task{State: tdf.Open, Waits: d.HasDependencies(), Rounds: n.round[:], whole: true, opened: n}
	n.properties.Define(&n.task.Definition)
	if !n.task.Waits {
		n.task.ClaimableFrom = d.StartAfter.Std()
	}
}

// setOpened completes a task that was just opened. The function idOf returns the ids of the other tasks of the call.
func (t *Task) setOpened(id int64, existing bool, idOf func(place int) int64) {
	t.ID, t.Existing = id, existing
	t.After, t.AfterAny = withIDs(t.After, idOf), withIDs(t.AfterAny, idOf)
}

// withIDs returns dependencies that name all tasks by their ids.
func withIDs(d *Dependencies, idOf func(place int) int64) *Dependencies {
	if d == nil || len(d.Places) == 0 {
		return d
	}
	ids := slices.Clone(d.Tasks)
	for _, place := range d.Places {
		ids = append(ids, idOf(place))
	}
	return &Dependencies{Tasks: ids, Group: d.Group}
}

// readExisting replaces the tasks that already existed by summaries of the tasks in Redis. If such a task was removed
// in the meantime, the returned task has its id, and the properties of the definition.
func (m *Manager) readExisting(ctx context.Context, tasks []*Task) error {
	var ids []int64
	for _, t := range tasks {
		if t.Existing {
			ids = append(ids, t.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	found := map[int64]*Task{}
	for t, err := range m.List(ctx, Query{IDs: ids}) {
		if err != nil {
			return err
		}
		t.Existing = true
		found[t.ID] = t
	}
	for i, t := range tasks {
		if x := found[t.ID]; t.Existing && x != nil {
			tasks[i] = x
		}
	}
	return nil
}
