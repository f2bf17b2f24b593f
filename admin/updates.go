package admin

import (
	"context"
	"fmt"

	"github.com/tdf-framework/tdf/redisstate"
)

// An Update is a line that a program reported while it ran (docs/programs.md, "The round's
// directory").
type Update = redisstate.Update

// Updates returns up to most updates of a task, those that came after the one given (the zero
// Update: from the first), in their order.
func (a *Admin) Updates(ctx context.Context, id int64, after Update, most int) ([]Update, error) {
	if most < 1 {
		return nil, fmt.Errorf("the updates of task %d: most %d has to be from 1 up", id, most)
	}
	s, err := a.redis(ctx)
	if err != nil {
		return nil, err
	}
	return s.Updates(ctx, id, after, most)
}

// Follow has the worker of a running task report every second for the next 15 s, and not only
// with each renewal of its lease: what it printed last (Round.Tail), its progress, its updates.
// It begins to do so with its next renewal. To go on, call it again.
func (a *Admin) Follow(ctx context.Context, id int64) error {
	s, err := a.redis(ctx)
	if err != nil {
		return err
	}
	return s.Follow(ctx, id)
}
