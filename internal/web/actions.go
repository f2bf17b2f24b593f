package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/selection"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/sweep"
)

// verbs are the actions of the API.
var verbs = map[string]rules.Verb{
	"cancel": rules.VerbCancel, "retry": rules.VerbReopen, "requeue": rules.VerbRelease, "archive": rules.VerbArchive,
	"change": rules.VerbChange, "remove": rules.VerbRemove,
}

// maxSkipped is the largest number of reasons in the answer.
const maxSkipped = 100

func (a *api) addActions() {
	add(a, route{
		http.MethodPost, "/tasks/actions", "act-on-tasks",
		"Cancel, retry, requeue, archive, change or remove tasks", toChange, true,
	}, a.actOnTasks)
	add(a, route{
		http.MethodPost, "/tasks/{id}/{action}", "act-on-task",
		"Cancel, retry, requeue, archive, change or remove a task", toChange, false,
	}, a.actOnTask)
}

// options say how an action changes tasks.
type options struct {
	Changes   *changes `json:"changes,omitempty" doc:"new values of properties, for change and retry"`
	Elsewhere bool     `json:"elsewhere,omitempty" doc:"for requeue: the task never runs on its present worker again"`

	Parameters parameters `json:"parameters,omitempty" doc:"for change and retry: new values of some parameters of the task; its input is made again, from changes.input as a template such as --rate {rate}, or without it from all parameters in their order"`
}

// parameters are new values of parameters.
type parameters []sweep.Param

func (p *parameters) UnmarshalJSON(data []byte) (err error) {
	*p, err = sweep.ParseParams(data)
	return err
}

// Schema describes an object with any values.
func (parameters) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// each returns the function that makes the changes of a task with new values of parameters.
func (p parameters) each(c manager.Changes) (func(*task.Task) (task.Changes, error), error) {
	if c.Meta != nil {
		return nil, refuse(string(task.CodeInvalid), "parameters with changes.meta: the parameters are the meta")
	}
	var template *sweep.Template
	if c.Input != nil {
		var err error
		if template, err = sweep.ParseTemplate(*c.Input); err != nil {
			return nil, refuse(string(task.CodeInvalid), fmt.Sprintf("changes.input: %v", err))
		}
	}
	return sweep.Changing(c, p, template), nil
}

// changes are the new values of properties.
type changes struct{ manager.Changes }

// action returns the action with a name. The error is a problem if the token may not make it.
func (o *options) action(c *call, name string) (manager.Action, error) {
	x := manager.Action{Verb: verbs[name], Elsewhere: o.Elsewhere}
	switch {
	case x.Verb == "":
		return x, refuse(string(task.CodeInvalid), fmt.Sprintf("unknown action %.100q", name))
	case o.Elsewhere && x.Verb != rules.VerbRelease:
		return x, refuse(string(task.CodeInvalid), "elsewhere is only for requeue")
	case o.Changes == nil && o.Parameters == nil && x.Verb == rules.VerbChange:
		return x, refuse(string(task.CodeInvalid), "change without changes")
	case o.Changes == nil && o.Parameters == nil:
		return x, nil
	case x.Verb != rules.VerbChange && x.Verb != rules.VerbReopen:
		return x, refuse(string(task.CodeInvalid), "changes and parameters are only for change and retry")
	}
	if o.Changes != nil {
		x.Changes = o.Changes.Changes
	}
	if o.Parameters != nil {
		var err error
		if x.Each, err = o.Parameters.each(x.Changes); err != nil {
			return x, err
		}
	}
	if queue := x.Changes.Queue; queue != nil {
		if err := c.token.CheckQueue(*queue); err != nil {
			return x, err
		}
	}
	return x, nil
}

type actInput struct {
	ID     int64    `path:"id" minimum:"1" doc:"the id of the task"`
	Action string   `path:"action" enum:"cancel,retry,requeue,archive,change,remove"`
	Match  string   `header:"If-Match" maxLength:"200" doc:"the ETag of the task; if the task has changed since, nothing happens"`
	Body   *options `required:"false"`
}

// done is the answer to a call that changes tasks.
type done struct {
	Done    int       `json:"done" doc:"the number of changed tasks"`
	Skipped int       `json:"skipped" doc:"the number of tasks that the action could not change"`
	Reasons []skipped `json:"reasons,omitempty" doc:"why, for the first 100 of them"`
}

type skipped struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func (a *api) actOnTask(ctx context.Context, c *call, in *actInput) (*out[done], error) {
	if in.Body == nil {
		in.Body = &options{}
	}
	action, err := in.Body.action(c, in.Action)
	if err != nil {
		return nil, err
	}
	t, err := a.summary(ctx, c, in.ID)
	if err != nil {
		return nil, err
	}
	ref := manager.ByIDs(t.ID)[0]
	if in.Match != "" {
		return a.actIfMatch(ctx, c, in.Match, action, t)
	}
	result, err := c.manager.Do(ctx, action, ref)
	if err != nil {
		return nil, err
	}
	if len(result.Skipped) > 0 {
		return nil, result.Skipped[0]
	}
	return &out[done]{done{Done: result.Done}}, nil
}

// actIfMatch acts on a task if it still has the version of an ETag.
func (a *api) actIfMatch(ctx context.Context, c *call, match string, action manager.Action,
	t *manager.Task,
) (*out[done], error) {
	changed := refuse(precondition, fmt.Sprintf("task %d has the ETag %s", t.ID, etag(t)))
	if match != etag(t) {
		return nil, changed
	}
	x := c.manager.Transaction()
	x.Do(action, t)
	if _, err := commit(ctx, x); err != nil {
		return nil, err
	}
	return &out[done]{done{Done: 1}}, nil
}

type bulkInput struct{ Body bulk }

// bulk names the tasks of an action: by their ids, or by a filter and the number of tasks that the caller expects it to
// select.
type bulk struct {
	Action string         `json:"action" enum:"cancel,retry,requeue,archive,change,remove"`
	IDs    []int64        `json:"ids,omitempty" doc:"the ids of the tasks"`
	Filter *manager.Query `json:"filter,omitempty" doc:"selects the tasks, as the parameters of the list do"`
	Expect *int           `json:"expect,omitempty" doc:"the number of tasks that the filter selects; if it selects another number, nothing happens"`

	options
}

func (a *api) actOnTasks(ctx context.Context, c *call, in *bulkInput) (*out[done], error) {
	b := &in.Body
	action, err := b.action(c, b.Action)
	if err != nil {
		return nil, err
	}
	refs, missing, err := a.selected(ctx, c, b)
	if err != nil {
		return nil, err
	}
	result, err := c.manager.Do(ctx, action, refs...)
	if err != nil {
		return nil, partly(result.Done, err)
	}
	for _, id := range missing {
		result.Skipped = append(result.Skipped, &rules.StateError{ID: id, Verb: action.Verb, State: task.None})
	}
	answer := done{Done: result.Done, Skipped: len(result.Skipped)}
	for _, err := range result.Skipped[:min(len(result.Skipped), maxSkipped)] {
		answer.Reasons = append(answer.Reasons, skipped{string(task.CodeOf(err)), err.Error()})
	}
	return &out[done]{answer}, nil
}

// selected returns the tasks that a call selects, as the caller may see them, and the ids that select no task.
func (a *api) selected(ctx context.Context, c *call, b *bulk) (refs []manager.Ref, missing []int64, err error) {
	q := manager.Query{IDs: b.IDs}
	if b.Filter != nil {
		q = *b.Filter
	}
	switch {
	case (len(b.IDs) > 0) == (b.Filter != nil):
		return nil, nil, refuse(string(task.CodeInvalid), "want either ids or a filter")
	case (b.Filter != nil) != (b.Expect != nil):
		return nil, nil, refuse(string(task.CodeInvalid), "want expect together with a filter, and only then")
	case len(q.IDs) > maxTasks:
		return nil, nil, refuse(tooLarge, fmt.Sprintf("%d ids; at most %d are possible in one call", len(q.IDs),
			maxTasks))
	}
	q = c.own(q)
	selection.ForRefs(&q)
	if refs, err = selection.Refs(c.manager.List(ctx, q)); err != nil {
		if err == selection.ErrMany {
			err = refuse(tooLarge, err.Error())
		}
		return nil, nil, err
	}
	if b.Expect != nil && *b.Expect != len(refs) {
		return nil, nil, refuse(string(task.CodeConflict), fmt.Sprintf("the filter selects %d tasks, and not %d",
			len(refs), *b.Expect))
	}
	found := map[int64]bool{}
	for _, r := range refs {
		found[r.ID] = true
	}
	return refs, slices.DeleteFunc(slices.Clone(b.IDs), func(id int64) bool { return found[id] }), nil
}
