package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
)

// A ForbiddenError means that the holder of a token may not do something, although the role of the token allows the
// call.
type ForbiddenError struct{ Reason string }

func (e *ForbiddenError) Error() string { return e.Reason }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*ForbiddenError) Code() task.Code { return task.CodeForbidden }

// Owner returns the owner of the tasks that the holder of the token may see. It is "" if the holder may see all tasks.
func (t *Token) Owner() string {
	if t.Role.Rights().See == All {
		return ""
	}
	return t.Name
}

// CheckGroup returns a *[ForbiddenError] if the tasks of the group may belong to others. The groups and unique keys of
// a token's own tasks begin with the name of the token and a slash, so that no token can take the names of another, or
// wait for its tasks.
func (t *Token) CheckGroup(name string) error { return t.checkName("campaign", name) }

func (t *Token) checkName(kind, name string) error {
	if task.OwnsName(t.Owner(), name) {
		return nil
	}
	return &ForbiddenError{fmt.Sprintf("the token %s may use only names that begin with %s/ for a %s, not %.100q",
		t.Name, t.Name, kind, name)}
}

// CheckQueue returns a *[ForbiddenError] if the token is not for the queue. The queue "" is [class.DefaultQueue].
func (t *Token) CheckQueue(queue string) error {
	if queue == "" {
		queue = class.DefaultQueue
	}
	if len(t.Queues) == 0 || slices.Contains(t.Queues, queue) {
		return nil
	}
	return &ForbiddenError{fmt.Sprintf("the token %s is only for the queues %s, not for %.100q", t.Name,
		strings.Join(t.Queues, ", "), queue)}
}

// Claim makes a new task belong to the token, if its holder may only see its own tasks. A task without a queue gets the
// first queue of the token. The error is a *[ForbiddenError]. The caller must check that the tasks in After and
// AfterAny belong to the token, too.
func (t *Token) Claim(d *task.Definition) error {
	if len(t.Queues) > 0 && d.Queue == "" {
		d.Queue = t.Queues[0]
	}
	if err := t.CheckQueue(d.Queue); err != nil || t.Owner() == "" {
		return err
	}
	if d.Owner != "" && d.Owner != t.Name {
		return &ForbiddenError{fmt.Sprintf("the token %s cannot open tasks of %.100q", t.Name, d.Owner)}
	}
	d.Owner = t.Name
	for kind, name := range map[string]string{"campaign": d.Group, "unique key": d.Unique} {
		if err := t.checkName(kind, name); err != nil && name != "" {
			return err
		}
	}
	for _, after := range []*task.Dependencies{d.After, d.AfterAny} {
		if after != nil && after.Group != "" {
			if err := t.CheckGroup(after.Group); err != nil {
				return err
			}
		}
	}
	return nil
}
