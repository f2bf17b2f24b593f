package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// addNamespace adds the routes about everything but single tasks.
func (a *api) addNamespace() {
	add(a, route{
		http.MethodGet, "/stats", "get-stats", "Read the metrics of the namespace, with its queues", toInspect,
		false,
	}, a.getStats)
	add(a, route{http.MethodGet, "/doctor", "diagnose", "Diagnose problems", toInspect, false},
		listOf(a.admin.Diagnose))
	add(a, route{http.MethodGet, "/failures", "list-failures", "Group failed rounds", toInspect, false}, a.listFailures)
	add(a, route{
		http.MethodGet, "/tasks/{id}/explain", "explain-task", "Explain why a task does not run or finish",
		toInspect, false,
	}, a.explain)
	add(a, route{http.MethodGet, "/groups", "list-groups", "List the campaigns that have tasks", toSee, false},
		a.listGroups)
	add(a, route{
		http.MethodGet, "/groups/{name}", "get-group",
		"Count the tasks of a campaign, and read whether it is closed", toSee, false,
	}, a.getGroup)
	add(a, route{
		http.MethodPost, "/groups/{name}/close", "close-group",
		"Close a campaign: no task can be opened in it", toOpen, false,
	}, changeGroup((*manager.Manager).CloseGroup))
	add(a, route{
		http.MethodPost, "/groups/{name}/extend", "extend-group", "Open a closed campaign again", toOpen,
		false,
	}, changeGroup((*manager.Manager).ExtendGroup))
	add(a, route{http.MethodGet, "/workers", "list-workers", "List the workers", toInspect, false},
		listOf(a.admin.Workers))
	add(a, route{
		http.MethodPost, "/workers/{name}/drain", "drain-worker", "Stop a worker from claiming tasks",
		toOperate, false,
	}, changeWorker((*admin.Admin).Drain))
	add(a, route{
		http.MethodPost, "/workers/{name}/resume", "resume-worker", "Let a drained worker claim tasks again",
		toOperate, false,
	}, changeWorker((*admin.Admin).Resume))
	add(a, route{
		http.MethodGet, "/limits", "list-limits", "List the limits of keys, and how they are used", toInspect,
		false,
	}, a.listLimits)
	add(a, route{
		http.MethodPut, "/limits/{key}", "set-limit",
		"Limit how many tasks of a key run at once, and how often one starts", toOperate, false,
	}, a.setLimit)
	add(a, route{http.MethodDelete, "/limits/{key}", "remove-limit", "Remove the limit of a key", toOperate, false},
		a.removeLimit)
	add(a, route{http.MethodGet, "/queues", "list-queues", "List the queues with their tasks by state, and whether " +
		"they are paused", toInspect, false}, listOf(a.admin.Queues))
	add(a, route{http.MethodGet, "/pauses", "list-pauses", "List what is paused", toInspect, false}, a.listPauses)
	add(a, route{
		http.MethodPost, "/pauses/add", "pause", "Pause a queue, a campaign or the namespace", toOperate,
		false,
	}, changePause(manager.Pauses.Begin))
	add(a, route{http.MethodPost, "/pauses/remove", "resume", "End a pause", toOperate, false},
		changePause(manager.Pauses.End))
}

// An out is an answer whose body is a value of package admin, or a list of them.
type out[T any] struct{ Body T }

func (a *api) getStats(ctx context.Context, _ *call, _ *none) (*out[view[admin.Stats]], error) {
	stats, err := a.admin.Stats(ctx)
	return &out[view[admin.Stats]]{view[admin.Stats]{stats}}, err
}

// listOf returns the function of a route whose answer is a list of package admin.
func listOf[T any](read func(context.Context) ([]T, error)) func(context.Context, *call, *none) (*out[[]view[T]],
	error) {
	return func(ctx context.Context, _ *call, _ *none) (*out[[]view[T]], error) {
		all, err := read(ctx)
		return &out[[]view[T]]{viewsOf(all)}, err
	}
}

type failuresInput struct {
	Filter
	Cursor string `query:"cursor" maxLength:"1000" doc:"the cursor that the last page returned as next"`
}

// failures is a page of failure groups.
type failures struct {
	Groups   []view[admin.FailureGroup] `json:"groups"`
	Suspects []view[admin.Suspect]      `json:"suspects" doc:"workers on which a program fails far more often than on others; only on the first page"`
	Looked   int                        `json:"looked" doc:"the number of tasks that were read for this page"`
	Of       int64                      `json:"of" doc:"the number of tasks that must be read for all pages"`
	Next     string                     `json:"next,omitempty" doc:"the cursor of the next page"`
}

func (a *api) listFailures(ctx context.Context, c *call, in *failuresInput) (*out[failures], error) {
	f, err := a.admin.Failures(ctx, in.query(c), in.Cursor)
	return &out[failures]{failures{viewsOf(f.Groups), viewsOf(f.Suspects), f.Looked, f.Of, f.Next}}, err
}

func (a *api) explain(ctx context.Context, _ *call, in *idInput) (*out[view[admin.Explanation]], error) {
	e, err := a.admin.Explain(ctx, in.ID)
	return &out[view[admin.Explanation]]{view[admin.Explanation]{e}}, err
}

type groupInput struct {
	Name string `path:"name" maxLength:"200" doc:"the name of the campaign; / is %2F"`
}

// group is the state of a group.
type group struct {
	Counts   map[task.State]int64 `json:"tasks" doc:"the number of tasks in each state"`
	Closed   bool                 `json:"closed"`
	Decided  bool                 `json:"decided"`
	Complete bool                 `json:"complete" doc:"the group is closed, and its tasks are finished"`
}

func (a *api) getGroup(ctx context.Context, c *call, in *groupInput) (*out[group], error) {
	if err := c.token.CheckGroup(in.Name); err != nil {
		return nil, err
	}
	s, err := c.manager.GroupStatus(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	return &out[group]{groupOf(s)}, nil
}

func groupOf(s manager.GroupStatus) group {
	g := group{map[task.State]int64{}, s.Closed, s.Decided, s.Complete()}
	for _, state := range task.States {
		g.Counts[state] = s.Counts[state]
	}
	return g
}

type groupsInput struct {
	Prefix string `query:"prefix" maxLength:"200" doc:"campaigns whose names begin with this text; the default for a token that sees only its own tasks is its name and /"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"the largest number of campaigns"`
	Cursor string `query:"cursor" maxLength:"1000" doc:"the cursor that the last page returned as next"`
}

// groups is a page of groups.
type groups struct {
	Groups []namedGroup `json:"groups"`
	Next   string       `json:"next,omitempty" doc:"the cursor of the next page; missing on the last page. A page may have fewer campaigns than asked for, although more pages follow."`
}

type namedGroup struct {
	Name string `json:"name"`
	group
}

func (a *api) listGroups(ctx context.Context, c *call, in *groupsInput) (*out[groups], error) {
	if owner := c.token.Owner(); owner != "" {
		in.Prefix = cmp.Or(in.Prefix, owner+"/")
		if err := c.token.CheckGroup(in.Prefix); err != nil {
			return nil, err
		}
	}
	page, err := c.manager.GroupPage(ctx, in.Prefix, in.Cursor, in.Limit)
	list := groups{[]namedGroup{}, page.Next}
	for _, g := range page.Groups {
		list.Groups = append(list.Groups, namedGroup{g.Name, groupOf(g.GroupStatus)})
	}
	return &out[groups]{list}, err
}

func changeGroup(change func(*manager.Manager, context.Context, string) error) func(context.Context, *call,
	*groupInput) (*none, error) {
	return func(ctx context.Context, c *call, in *groupInput) (*none, error) {
		if err := checkGroup(c, in.Name); err != nil {
			return nil, err
		}
		return nil, change(c.manager, ctx, in.Name)
	}
}

// checkGroup returns an error if the name of a group is invalid, or if the token may not use it.
func checkGroup(c *call, name string) error {
	if err := c.token.CheckGroup(name); err != nil {
		return err
	}
	return (task.Pausable{Group: name}).Check()
}

type workerInput struct {
	Name string `path:"name" maxLength:"200" doc:"the name of the worker"`
}

func changeWorker(change func(*admin.Admin, context.Context, string) error) func(context.Context, *call,
	*workerInput) (*none, error) {
	return func(ctx context.Context, c *call, in *workerInput) (*none, error) {
		return nil, change(admin.New(c.manager), ctx, in.Name)
	}
}

// limit is the limit of a key.
type limit struct {
	AtMost *int    `json:"at_most,omitempty" doc:"the largest number of running tasks; missing for any number"`
	Starts int     `json:"starts,omitempty" doc:"at most this number of tasks start in seconds"`
	Span   float64 `json:"seconds,omitempty"`
}

// usedLimit is a limit, and how it is used.
type usedLimit struct {
	Key     string `json:"key"`
	Limit   limit  `json:"limit"`
	Running int    `json:"running"`
	Waiting int    `json:"waiting"`
}

func (a *api) listLimits(ctx context.Context, c *call, _ *none) (*out[[]usedLimit], error) {
	all, err := c.manager.Limits().All(ctx)
	limits := make([]usedLimit, len(all))
	for i, l := range all {
		limits[i] = usedLimit{l.Key, limit{Starts: l.Starts, Span: l.Per.Seconds()}, l.Running, l.Waiting}
		if l.HasNumber() {
			limits[i].Limit.AtMost = &l.AtMost
		}
	}
	return &out[[]usedLimit]{limits}, err
}

type keyInput struct {
	Key string `path:"key" maxLength:"200" doc:"the limit key; / is %2F"`
}

type limitInput struct {
	Key  string `path:"key" maxLength:"200" doc:"the limit key; / is %2F"`
	Body limit
}

func (a *api) setLimit(ctx context.Context, c *call, in *limitInput) (*none, error) {
	l, err := task.NewLimit(in.Body.AtMost, in.Body.Starts, task.Seconds(in.Body.Span).Std())
	if err != nil {
		return nil, refuse(string(task.CodeInvalid), err.Error())
	}
	return nil, c.manager.Limits().Set(ctx, in.Key, l)
}

func (a *api) removeLimit(ctx context.Context, c *call, in *keyInput) (*none, error) {
	return nil, c.manager.Limits().Remove(ctx, in.Key)
}

// pausable is what a call pauses or resumes.
type pausable struct {
	Queue     string `json:"queue,omitempty" doc:"a queue; default is the queue of the tasks without a queue"`
	Group     string `json:"group,omitempty" doc:"a campaign"`
	Failures  int    `json:"failures,omitempty" doc:"pause the campaign only when this number of its tasks have failed"`
	Namespace bool   `json:"namespace,omitempty" doc:"the whole namespace"`
}

func (p pausable) value() (task.Pausable, error) {
	v := task.Pausable{Namespace: p.Namespace, Queue: p.Queue, Group: p.Group, Failures: p.Failures}
	return v, v.Check()
}

// paused is a pause.
type paused struct {
	What  pausable  `json:"what"`
	By    string    `json:"by"`
	Since time.Time `json:"since"`
}

type pauseInput struct{ Body pausable }

func (a *api) listPauses(ctx context.Context, c *call, _ *none) (*out[[]paused], error) {
	all, err := c.manager.Pauses().All(ctx)
	pauses := make([]paused, len(all))
	for i, p := range all {
		pauses[i] = paused{
			pausable{Queue: p.Queue, Group: p.Group, Namespace: p.Namespace},
			p.By,
			p.Since,
		}
	}
	return &out[[]paused]{pauses}, err
}

func changePause(change func(manager.Pauses, context.Context, ...task.Pausable) error) func(context.Context, *call,
	*pauseInput) (*none, error) {
	return func(ctx context.Context, c *call, in *pauseInput) (*none, error) {
		what, err := in.Body.value()
		if err != nil {
			return nil, err
		}
		if err := change(c.manager.Pauses(), ctx, what); err != nil {
			return nil, fmt.Errorf("%s: %w", what.Text(), err)
		}
		return nil, nil
	}
}
