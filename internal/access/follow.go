package access

import (
	"fmt"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
)

// CheckFollowing returns a *[ForbiddenError] if the holder of the token may not let a round of a task open another
// task (docs/http.md, "Workers"). The rights are those of the holder, and not those of the task's owner. A holder who
// may only work gets no program, no queue and no output in this way that the task itself does not lead to, and runs no
// task before the others of the task's owner. The function inGroup reports whether a task with this id is in the task's
// campaign.
func (t *Token) CheckFollowing(of *task.Task, p *task.Properties, inGroup func(id int64) bool) error {
	if rights := t.Role.Rights(); rights.Open && rights.See == All {
		return nil
	}
	if err := t.CheckQueue(p.Queue); err != nil {
		return err
	}
	if err := checkFollowing(of, p, inGroup); err != nil {
		return &ForbiddenError{fmt.Sprintf("the token %s may only work, so its tasks open tasks only %v", t.Name, err)}
	}
	return nil
}

func checkFollowing(of *task.Task, p *task.Properties, inGroup func(id int64) bool) error {
	ownName := func(name string) bool { return of.Group != "" && strings.HasPrefix(name, of.Group+"/") }
	switch {
	case p.Program != of.Program:
		return fmt.Errorf("with their own program, not %.100q", p.Program)
	case p.Source != of.Source:
		return fmt.Errorf("with their own source, not %.100q", p.Source)
	case p.Group != of.Group:
		return fmt.Errorf("in their own campaign, not %.100q", p.Group)
	case strings.HasPrefix(of.Source, task.SchemeExec+":"):
		return fmt.Errorf("with their own program, and the program of %.100q is the input", of.Source)
	case p.Priority > of.Priority:
		return fmt.Errorf("with at most their own priority %d, not %d", of.Priority, p.Priority)
	case p.LimitKey != of.LimitKey && (of.LimitKey != "" || !ownName(p.LimitKey)):
		return fmt.Errorf("with their own limit key or, if they have none, with limit keys that begin with the name of "+
			"their campaign and a slash, not %.100q", p.LimitKey)
	case p.Unique != "" && p.Unique != of.Unique && !ownName(p.Unique):
		return fmt.Errorf("with unique keys that begin with the name of their campaign and a slash, not %.100q", p.Unique)
	}
	for _, after := range []*task.Dependencies{p.After, p.AfterAny} {
		if after == nil {
			continue
		}
		if after.Group != "" {
			return fmt.Errorf("that wait for no other campaign, not for %.100q", after.Group)
		}
		for _, id := range after.Tasks {
			if id != of.ID && !inGroup(id) {
				return fmt.Errorf("that wait for tasks of their own campaign or report, not for task %d", id)
			}
		}
	}
	return nil
}
