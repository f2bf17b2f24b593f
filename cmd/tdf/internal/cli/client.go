package cli

import (
	"context"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
)

// A Client is a manager with methods that only tdf needs.
type Client struct {
	*manager.Manager                // has no defaults for tasks, because defaults would replace empty values from the command line
	defaults         tdf.Properties // the configuration's [task_defaults]
}

func (c *Client) Admin() *admin.Admin { return admin.New(c.Manager) }

// RedisTime returns the time of Redis's clock.
func (c *Client) RedisTime(ctx context.Context) (tdf.Time, error) {
	now, err := c.Now(ctx)
	return tdf.At(now), err
}

// Define returns the properties of a new task. It keeps empty arguments, and uses the configuration's defaults for all other
// properties.
func (c *Client) Define(program, source, input string) tdf.Properties {
	p := c.defaults
	p.Program, p.Source, p.Input = program, source, input
	return p
}

type opener func(context.Context, ...manager.Definition) ([]*manager.Task, error)

// OpenAs opens tasks with exactly the given properties. The opener is a method of the manager.
func (c *Client) OpenAs(ctx context.Context, open opener, all ...tdf.Properties) ([]*manager.Task, error) {
	definitions := make([]manager.Definition, len(all))
	for i := range all {
		definitions[i] = all[i].Definition()
	}
	return open(ctx, definitions...)
}

// StoreProgram stores a packed program in Redis.
func StoreProgram(ctx context.Context, a *App, m *Client, packed program.Packed) error {
	p, err := program.PushPacked(ctx, m.Manager, packed)
	if err == nil {
		a.Say("stored program %s: %s, %s", p.Program, Counted(p.Files, "file"), Size(p.Bytes))
	}
	return err
}
