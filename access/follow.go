package access

import (
	"fmt"
	"strings"

	"github.com/tdf-framework/tdf"
)

// CheckFollowing returns a *[ForbiddenError] if the holder of the token may not let a round of a task open another
// task (docs/http.md, "Workers"). The rights are those of the holder, and not those of the task's owner. A holder who
// may only work gets no program, no queue and no output in this way that the task itself does not lead to. The
// function inGroup reports whether a task with this id is in the task's campaign.
func (t *Token) CheckFollowing(of *tdf.Task, p *tdf.Properties, inGroup func(id int64) bool) error {
	if rights := t.Role.Rights(); rights.Open && rights.See == All {
		return nil
	}
	if err := t.CheckQueue(p.Queue); err != nil {
		return err
	}
	refuse := func(format string, a ...any) error {
		only := fmt.Sprintf("the token %s may only work, so its tasks open tasks only ", t.Name)
		return &ForbiddenError{only + fmt.Sprintf(format, a...)}
	}
	switch {
	case p.Program != of.Program:
		return refuse("with their own program, not %.100q", p.Program)
	case p.Source != of.Source:
		return refuse("with their own source, not %.100q", p.Source)
	case p.Group != of.Group:
		return refuse("in their own campaign, not %.100q", p.Group)
	case p.Unique != "" && p.Unique != of.Unique && (of.Group == "" || !strings.HasPrefix(p.Unique, of.Group+"/")):
		return refuse("with unique keys that begin with the name of their campaign and a slash, not %.100q", p.Unique)
	}
	for _, after := range []*tdf.Dependencies{p.After, p.AfterAny} {
		if after == nil {
			continue
		}
		if after.Group != "" {
			return refuse("that wait for no other campaign, not for %.100q", after.Group)
		}
		for _, id := range after.Tasks {
			if id != of.ID && !inGroup(id) {
				return refuse("that wait for tasks of their own campaign or report, not for task %d", id)
			}
		}
	}
	return nil
}
