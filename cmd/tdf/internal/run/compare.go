package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// No callback comes for a task that a user has archived or removed, or that a failover has lost. So a call compares its
// pending tasks with Redis: comparedAtOnce of them, every compareEvery.
const (
	comparedAtOnce = 500
	compareEvery   = time.Second
)

// errComplete ends the callbacks, because all tasks have finished.
var errComplete = errors.New("all tasks have finished")

// compareAll compares the pending tasks with Redis, again and again, until all tasks have finished.
func (c *campaign) compareAll(ctx context.Context) {
	for id := int64(0); cli.Sleep(ctx, compareEvery) == nil; {
		c.mu.Lock()
		ids := c.own.after(id, comparedAtOnce)
		c.mu.Unlock()
		id = 0
		if len(ids) == comparedAtOnce {
			id = ids[len(ids)-1]
		}
		err := c.compare(ctx, ids)
		if err != nil {
			c.abort(err)
		} else if c.isComplete(ctx) {
			c.abort(errComplete)
		}
	}
}

// compare handles those of some pending tasks that were archived, and counts those that are not in Redis any more. With
// --keep-order, tasks that were archived wait for earlier ones.
func (c *campaign) compare(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	states := map[int64]task.State{}
	for t, err := range c.m.List(ctx, manager.Query{IDs: ids}) {
		if err != nil {
			return err
		}
		if t.Group == c.base.Group { // otherwise, Redis has forgotten the task, and given its id to another one
			states[t.ID] = t.State
		}
	}
	c.settling.Lock()
	defer c.settling.Unlock()
	waits := false
	for _, id := range ids {
		switch state, is := states[id]; {
		case !is:
			c.vanish(id)
		case state != task.Archived:
			waits = true
		case !waits || !c.keepOrder:
			t, err := c.m.Get(ctx, id)
			if errors.Is(err, task.ErrNoTask) {
				c.vanish(id)
				continue
			}
			if err == nil && t.State == task.Archived {
				err = c.settle(ctx, t)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// compareBefore compares the pending tasks that were opened before a finished task. With --keep-order, these have been
// archived or removed, so no callbacks come for them.
func (c *campaign) compareBefore(ctx context.Context, id int64) error {
	for last := int64(0); ; {
		c.mu.Lock()
		ids := c.own.after(last, comparedAtOnce)
		c.mu.Unlock()
		earlier := slices.DeleteFunc(ids, func(other int64) bool { return other >= id })
		if len(earlier) == 0 {
			return nil
		}
		err := c.compare(ctx, earlier)
		if err != nil {
			return err
		}
		last = earlier[len(earlier)-1]
	}
}

// vanish counts a pending task that is not in Redis any more.
func (c *campaign) vanish(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.own.isPending(id) { // its callback may have been called meanwhile
		c.own.end(id)
		c.vanished = append(c.vanished, id)
		c.poke()
	}
}

// sayVanished names the tasks that vanished.
func (c *campaign) sayVanished() {
	const most = 10
	var ids []string
	for _, id := range c.vanished[:min(len(c.vanished), most)] {
		ids = append(ids, fmt.Sprint(id))
	}
	if len(c.vanished) > most {
		ids = append(ids, "…")
	}
	if len(ids) > 0 {
		c.a.Say("%s vanished from Redis, by tdf rm or a failover, before this call had read the results: %s",
			format.Tasks(len(c.vanished)), strings.Join(ids, ", "))
	}
}

// isComplete reports whether all tasks have finished, also those that were retried after they had.
func (c *campaign) isComplete(ctx context.Context) bool {
	ended := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.allOpened && len(c.own.pending) == 0
	}
	if !ended() || c.here.temporary { // no one retries a task of a Redis that only this call knows
		return ended()
	}
	counts, err := c.m.Counts(ctx, c.base.Group)
	if err != nil || counts.Unfinished() == 0 {
		return err == nil
	}
	for t, err := range c.m.List(ctx, manager.Query{
		Group: c.base.Group, States: task.UnfinishedStates,
	}) {
		if err != nil {
			return false
		}
		c.mu.Lock()
		if c.own.has(t.ID) && !c.own.isPending(t.ID) {
			c.own.reopen(t.ID)
		}
		c.mu.Unlock()
	}
	return ended()
}
