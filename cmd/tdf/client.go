package main

import (
	"context"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/internal/acting"
	"github.com/tdf-framework/tdf/internal/friend"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// A client is a manager whose tasks are read as the rule book has them. Commands that do not need the rule book use the manager, or
// admin, instead.
type client struct{ *manager.Manager }

// The types of internal packages that a client takes and returns.
type (
	taskAction = acting.Action
	taskRef    = acting.Ref
	taskResult = acting.Result
)

func (c *client) admin() *admin.Admin { return admin.New(c.Manager) }

func (c *client) store(ctx context.Context) (*redisstate.Store, error) {
	return friend.StoreOf(ctx, c.Manager)
}

func (c *client) now(ctx context.Context) (tdf.Time, error) {
	s, err := c.store(ctx)
	if err != nil {
		return 0, err
	}
	return s.Now(ctx)
}

func (c *client) act(ctx context.Context, action taskAction, refs ...taskRef) (taskResult, error) {
	s, err := c.store(ctx)
	if err != nil {
		return taskResult{}, err
	}
	return acting.Do(ctx, s, friend.PartsOf(c.Manager).Name, action, refs...)
}

// define returns the properties of a task with the configuration's defaults.
func (c *client) define(program, source, input string) tdf.Properties {
	p := friend.PartsOf(c.Manager).Config.TaskDefaults
	p.Program, p.Source, p.Input = program, source, input
	return p
}

type opener func(context.Context, ...manager.Definition) ([]*manager.Task, error)

// open opens tasks by one of the manager's methods, and returns their ids.
func (c *client) open(ctx context.Context, by opener, all ...tdf.Properties) ([]int64, error) {
	definitions := make([]manager.Definition, len(all))
	for i := range all {
		definitions[i] = friend.DefinitionOf(all[i]).(manager.Definition)
	}
	tasks, err := by(ctx, definitions...)
	ids := make([]int64, len(tasks))
	for i, t := range tasks {
		ids[i] = t.ID
	}
	return ids, err
}
