package admin

import (
	"context"
	"fmt"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
)

// mostPending is the largest number of dependencies that an explanation names.
const mostPending = 5

func pendingOf(ctx context.Context, s *redisstate.Store, t *task.Task) ([]dependencies.Dependency, error) {
	if !t.Waits() {
		return nil, nil
	}
	return dependencies.Pending(ctx, s, t.ID, mostPending)
}

// dependencies returns the check of a task that waits for others.
func (c *situation) dependencies() Check {
	r := c.task.Current()
	switch {
	case r.Unmet != "":
		return blockedBy("dependencies", FactDependencyUnmet, "the task will fail: "+r.Unmet,
			fix("retry that task together with this one"))
	case c.task.MustLink():
		return blockedBy("dependencies", FactLinking, fmt.Sprintf("the server has looked up %d of %d dependencies",
			r.Linked, c.task.Links), toWait)
	case len(c.pending) == 0:
		return blockedBy("dependencies", FactUnblocking,
			"all dependencies have ended, and the server lets the task run soon", toWait)
	}
	var names []string
	toDo := toWait
	for _, d := range c.pending {
		names = append(names, d.String())
		if d.ID == 0 && d.Mark == task.GroupOpen {
			toDo = toWait.or(toClose)
		}
	}
	text := fmt.Sprintf("%d of %d have not ended: %s", r.Waits, c.task.Links, strings.Join(names, ", "))
	if r.Waits > len(names) {
		text += ", …"
	}
	return blockedBy("dependencies", FactDependencies, text, toDo)
}
