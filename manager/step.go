package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
)

// A Step collects changes of tasks that happen together or not at all. The step of a [Transaction] is carried out by
// Commit. The step of a [Finished] is carried out by Run, when it archives the task.
//
// All tasks that you pass to a Step must be unchanged since you read them, until the step is carried out: each must
// still have the state, the round and the revision that you saw. You can pass each task only once, and at most
// [MaxStep] tasks and definitions in total.
type Step struct {
	definitions []Definition
	actions     []stepAction
	decide      string // the group whose completion the step decides, or ""
}

// A stepAction is an action on one task, which the caller has read.
type stepAction struct {
	Action
	task *Task
}

// MaxStep is the maximum number of tasks in one step. The step of a [Finished] also contains its own task. The sources,
// inputs and metas of the step's new tasks, and all new values of other tasks, have at most 4 MiB together.
const MaxStep = 1000

const maxStepBytes = 4 << 20

// Open opens tasks. Places in [Dependencies] count the definitions of the whole step. If another task holds the Unique
// key of a definition, no task is opened for this definition.
func (s *Step) Open(definitions ...Definition) { s.definitions = append(s.definitions, definitions...) }

// Archive archives finished tasks.
func (s *Step) Archive(tasks ...*Task) { s.add(Action{Verb: rules.VerbArchive}, tasks) }

// Retry runs finished tasks again, as [Manager.Retry] does.
func (s *Step) Retry(changes Changes, tasks ...*Task) {
	s.add(Action{Verb: rules.VerbReopen, Changes: changes}, tasks)
}

// Remove deletes finished tasks and their outputs, as [Manager.Remove] does.
func (s *Step) Remove(tasks ...*Task) { s.add(Action{Verb: rules.VerbRemove}, tasks) }

// Cancel ends open and running tasks.
func (s *Step) Cancel(tasks ...*Task) { s.add(Action{Verb: rules.VerbCancel}, tasks) }

// Update changes properties of open tasks.
func (s *Step) Update(changes Changes, tasks ...*Task) {
	s.add(Action{Verb: rules.VerbChange, Changes: changes}, tasks)
}

// Do makes any of the changes above.
func (s *Step) Do(action Action, tasks ...*Task) { s.add(action, tasks) }

// Require changes nothing. If one of the tasks has changed since you read it, the step is refused. The output and the
// progress of a running task are no changes.
func (s *Step) Require(tasks ...*Task) { s.add(Action{Verb: rules.VerbRequire}, tasks) }

// Decide requires that a group is complete, and that no other step has decided this. So of all steps that decide the
// same group, only one happens. Afterwards, the group cannot be extended. A step can decide one group. See
// [Manager.CloseGroup].
func (s *Step) Decide(group string) { s.decide = group }

func (s *Step) add(action Action, tasks []*Task) {
	for _, t := range tasks {
		s.actions = append(s.actions, stepAction{action, t})
	}
}

// unit returns the step as a unit for Redis. It refuses a step that is too large, that names a task twice, or whose
// tasks have changed. If own is not nil, the step also archives this task.
func (m *Manager) unit(ctx context.Context, s *Step, own *Task) (redisstate.Unit, error) {
	if n := len(s.definitions) + len(s.actions); n > MaxStep {
		return redisstate.Unit{}, invalid("%d tasks are too many to change at once, at most %d are possible; use "+
			"several transactions, or let some tasks open the others", n, MaxStep)
	}
	if err := s.checkTwice(own); err != nil {
		return redisstate.Unit{}, err
	}
	open := m.in().Properties(s.definitions)
	if err := task.ValidateAll(open); err != nil {
		return redisstate.Unit{}, err
	}
	if _, err := task.InOrder(open); err != nil {
		return redisstate.Unit{}, err
	}
	// a follow-up that is late, or has a dependency that is not met, ends later, so that its callback can end
	if own == nil {
		if err := m.in().CheckEnds(ctx, false, open); err != nil {
			return redisstate.Unit{}, err
		}
		if err := dependencies.Check(ctx, m.in().Store, open); err != nil {
			return redisstate.Unit{}, err
		}
	}
	open, err := m.in().Scatter(ctx, open)
	if err != nil {
		return redisstate.Unit{}, err
	}
	u := redisstate.Unit{Open: open, Decide: s.decide}
	if own != nil {
		move, err := rules.Archive(own.Stored())
		if err != nil {
			return u, err // never happens, because the task was read in a state from which it can be archived
		}
		u.Moves = append(u.Moves, move)
	}
	moves, err := m.moves(ctx, s.actions)
	if err != nil {
		return u, err
	}
	u.Moves = append(u.Moves, moves...)
	if n := u.Size(); n > maxStepBytes {
		return u, invalid("its sources, inputs, metas and changes have %d bytes in total, at most %d are "+
			"possible; use several transactions", n, maxStepBytes)
	}
	return u, nil
}

func invalid(format string, values ...any) error {
	return task.NewError(tdf.CodeInvalid, fmt.Sprintf(format, values...))
}

func (s *Step) checkTwice(own *Task) error {
	named := map[int64]bool{}
	if own != nil {
		named[own.ID] = true
	}
	for _, a := range s.actions {
		if named[a.task.ID] {
			return invalid("task %d occurs twice; name each task once", a.task.ID)
		}
		named[a.task.ID] = true
	}
	return nil
}

// moves reads the tasks of a step again, and decides their Moves. A Move depends on properties that a summary lacks.
func (m *Manager) moves(ctx context.Context, actions []stepAction) ([]rules.Move, error) {
	if len(actions) == 0 {
		return nil, nil
	}
	now, err := m.in().Store.Now(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := m.readStep(ctx, actions)
	if err != nil {
		return nil, err
	}
	refused := &StepError{}
	moves, errs := make([]rules.Move, len(actions)), make([]error, len(actions))
	for i, a := range actions {
		if !refused.compare(a, stored[i].Task) {
			continue
		}
		var move rules.Move
		if move, errs[i] = a.moveAt(stored[i].Task, now); errs[i] == nil {
			moves[i] = move.IfUnchanged(stored[i].Task)
		}
	}
	if err := m.addCauses(ctx, refused, actions, errs); err != nil {
		return nil, err
	}
	return moves, refused.orNil()
}

func (m *Manager) readStep(ctx context.Context, actions []stepAction) ([]redisstate.Stored, error) {
	ids := make([]int64, len(actions))
	for i, a := range actions {
		ids[i] = a.task.ID
	}
	return m.in().Store.Read(ctx, ids, redisstate.Want{Fields: redisstate.Rules})
}

// addCauses adds the reasons why actions are impossible. A task is read in several calls, and may have changed between
// them. Then this change is the reason, and addCauses adds it instead.
func (m *Manager) addCauses(ctx context.Context, refused *StepError, actions []stepAction, errs []error) error {
	var impossible []stepAction
	for i, err := range errs {
		if err != nil {
			impossible = append(impossible, actions[i])
		}
	}
	if len(impossible) == 0 {
		return nil
	}
	stored, err := m.readStep(ctx, impossible)
	if err != nil {
		return err
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	for i, a := range impossible {
		if refused.compare(a, stored[i].Task) {
			refused.Causes = append(refused.Causes, errs[i])
		}
	}
	return nil
}

// refusal returns a *StepError with all reasons why Redis refused a step.
func (s *Step) refusal(reasons []error) error {
	refused := &StepError{}
	for _, reason := range reasons {
		var found *tdf.StateError
		i := -1
		if errors.As(reason, &found) {
			i = slices.IndexFunc(s.actions, func(a stepAction) bool { return a.task.ID == found.ID })
		}
		if i < 0 {
			refused.Causes = append(refused.Causes, reason)
			continue
		}
		refused.changed(s.actions[i], Version{State: found.State, Round: found.Round, Revision: found.Revision})
	}
	return refused
}
