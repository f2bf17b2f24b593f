package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// addTransactions adds the route of transactions.
func (a *api) addTransactions() {
	add(a, route{
		http.MethodPost, "/transactions", "commit-transaction", "Open and change tasks, all or nothing",
		toOpen, true,
	}, a.commitTransaction)
}

type commitInput struct{ Body transaction }

// transaction is a step that happens as a whole or not at all.
type transaction struct {
	Open    definitions  `json:"open,omitempty" doc:"tasks to open; places in after count these definitions from 0"`
	Actions []stepAction `json:"actions,omitempty" doc:"changes of tasks"`
	Require []version    `json:"require,omitempty" doc:"tasks that must not have changed"`
	Decide  string       `json:"decide,omitempty" doc:"a campaign that must be complete, and whose completion no other transaction has decided"`
}

// version is a version of a task.
type version struct {
	ID   int64  `json:"id"`
	ETag string `json:"etag,omitempty" doc:"the ETag of the task; if the task has changed since, nothing happens"`
}

// stepAction is an action on a version of a task.
type stepAction struct {
	Action string `json:"action" enum:"cancel,retry,requeue,archive,change,remove"`
	version
	options
}

func (a *api) commitTransaction(ctx context.Context, c *call, in *commitInput) (*out[opened], error) {
	t := &in.Body
	if n := len(t.Open) + len(t.Actions) + len(t.Require); n > manager.MaxStep {
		return nil, refuse(tooLarge, fmt.Sprintf("%d tasks; at most %d are possible in one transaction", n,
			manager.MaxStep))
	}
	if err := a.claim(ctx, c, t.Open); err != nil {
		return nil, err
	}
	if t.Decide != "" {
		if err := checkGroup(c, t.Decide); err != nil {
			return nil, err
		}
	}
	x := c.manager.Transaction()
	x.Open(t.Open...)
	if t.Decide != "" {
		x.Decide(t.Decide)
	}
	if err := a.addActionsTo(ctx, c, x, t); err != nil {
		return nil, err
	}
	tasks, err := commit(ctx, x)
	if err != nil {
		return nil, err
	}
	return &out[opened]{a.openedBy(tasks)}, nil
}

// commit commits a transaction. The error is a problem if a task has not the version that the call names.
func commit(ctx context.Context, x *manager.Transaction) ([]*manager.Task, error) {
	tasks, err := x.Commit(ctx)
	if refused := new(manager.StepError); errors.As(err, &refused) && len(refused.Changed) > 0 {
		err = refuse(precondition, err.Error())
	}
	return tasks, err
}

// addActionsTo adds the actions and the preconditions of a call to a transaction. It reads their tasks, and compares
// their versions.
func (a *api) addActionsTo(ctx context.Context, c *call, x *manager.Transaction, t *transaction) error {
	ids := make([]int64, 0, len(t.Actions)+len(t.Require))
	for _, s := range t.Actions {
		ids = append(ids, s.ID)
	}
	for _, v := range t.Require {
		ids = append(ids, v.ID)
	}
	if len(ids) == 0 {
		return nil
	}
	found := map[int64]*manager.Task{}
	for one, err := range c.manager.List(ctx, c.own(manager.Query{IDs: ids})) {
		if err != nil {
			return err
		}
		found[one.ID] = one
	}
	var changed []string
	read := func(v version) (*manager.Task, error) {
		one := found[v.ID]
		if one == nil {
			return nil, fmt.Errorf("task %d: %w", v.ID, task.ErrNoTask)
		}
		if v.ETag != "" && v.ETag != etag(one) && len(changed) < maxSkipped {
			changed = append(changed, fmt.Sprintf("task %d has the ETag %s", v.ID, etag(one)))
		}
		return one, nil
	}
	for _, s := range t.Actions {
		action, err := s.options.action(c, s.Action)
		if err != nil {
			return err
		}
		one, err := read(s.version)
		if err != nil {
			return err
		}
		x.Do(action, one)
	}
	for _, v := range t.Require {
		one, err := read(v)
		if err != nil {
			return err
		}
		x.Require(one)
	}
	if len(changed) > 0 {
		return refuse(precondition, strings.Join(changed, "; "))
	}
	return nil
}
