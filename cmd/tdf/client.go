package main

import (
	"context"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/manager"
)

// A client is a manager with methods that only tdf needs.
type client struct {
	*manager.Manager                // has no defaults for tasks, because defaults would replace empty values from the command line
	defaults         tdf.Properties // the configuration's [task_defaults]
}

func (c *client) admin() *admin.Admin { return admin.New(c.Manager) }

// now returns the time of Redis's clock.
func (c *client) now(ctx context.Context) (tdf.Time, error) {
	now, err := c.Now(ctx)
	return tdf.At(now), err
}

// define returns the properties of a new task. It keeps empty arguments, and uses the configuration's defaults for all other
// properties.
func (c *client) define(program, source, input string) tdf.Properties {
	p := c.defaults
	p.Program, p.Source, p.Input = program, source, input
	return p
}

type opener func(context.Context, ...manager.Definition) ([]*manager.Task, error)

// open opens tasks with exactly the given properties. The opener is a method of the manager.
func (c *client) open(ctx context.Context, open opener, all ...tdf.Properties) ([]*manager.Task, error) {
	definitions := make([]manager.Definition, len(all))
	for i := range all {
		definitions[i] = all[i].Definition()
	}
	return open(ctx, definitions...)
}
