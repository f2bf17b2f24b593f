package manager

import (
	"context"
	"fmt"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/task"
)

// A Transaction is a [Step] that [Transaction.Commit] carries out (docs/manager.md, "Transactions"). Only one goroutine
// at a time may use it.
type Transaction struct {
	Step
	manager   *Manager
	committed bool
}

// Transaction returns an empty transaction.
func (m *Manager) Transaction() *Transaction { return &Transaction{manager: m} }

// ErrCommitted is the error of a second Commit.
var ErrCommitted = task.NewError(tdf.CodeInvalid, "the transaction was already committed; make a new one")

// Commit carries out the step of the transaction: all of it or nothing. It returns the tasks that the step opened, in
// the order of their definitions, as [Manager.Open] does.
//
// If tasks have changed since you read them, or if an action is not possible, the error wraps a *[StepError]. If a
// definition is invalid, the error wraps a *[tdf.PropertyError]. If a stored program does not exist, the error wraps
// [ErrNoProgram]. After any of these errors, nothing has happened. If ctx ends during the call, it is unknown whether
// the step was carried out. A second Commit returns [ErrCommitted].
func (x *Transaction) Commit(ctx context.Context) ([]*Task, error) {
	if x.committed {
		return nil, fmt.Errorf("commit transaction: %w", ErrCommitted)
	}
	x.committed = true
	opened, err := x.commit(ctx)
	if err != nil {
		err = fmt.Errorf("commit transaction: %w", err)
	}
	return opened, err
}

func (x *Transaction) commit(ctx context.Context) ([]*Task, error) {
	m := x.manager
	u, err := m.unit(ctx, &x.Step, nil)
	if err != nil || len(u.Moves)+len(u.Open) == 0 && u.Decide == "" {
		return nil, err
	}
	if err := m.in().Store.CheckNamed(ctx, u.Open); err != nil {
		return nil, err
	}
	outcomes, err := m.in().Store.Apply(ctx, m.in().Name, u)
	if len(outcomes) == 0 {
		return nil, err
	}
	o := outcomes[0]
	if o.Err != nil {
		return nil, x.refusal(o.Refused)
	}
	opened := openedTasks(u.Open)
	for i, id := range o.IDs {
		opened[i].setOpened(id, o.Existing != nil && o.Existing[i], func(place int) int64 { return o.IDs[place] })
	}
	if err != nil {
		return opened, err
	}
	return opened, m.readExisting(ctx, opened)
}
