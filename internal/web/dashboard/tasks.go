package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/selection"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// A filter is the part of an address that selects tasks. Its parameters have the names and the meaning of the flags of
// tdf ls.
type filter struct{ selection.Filter }

func filterOf(query url.Values) filter {
	words := func(name string) (all []string) {
		for _, value := range query[name] {
			all = append(all, strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ',' })...)
		}
		return all
	}
	one := func(name string) string { return strings.TrimSpace(query.Get(name)) }
	return filter{selection.Filter{
		IDs: words("id"), States: words("state"), Outcomes: words("outcome"), Group: query.Get("campaign"),
		Queue: one("queue"), Owner: one("owner"), Program: one("of"),
		Worker: one("worker"), Exit: one("exit"), Output: query.Get("output-has"), Error: query.Get("error-has"),
		Failure: one("failure"), FailureBy: query.Get("by"), Callback: one("callback"),
		OlderThan: one("older-than"), NewerThan: one("newer-than"),
		Params: slices.DeleteFunc(slices.Clone(query["param"]), func(p string) bool { return p == "" }),
		Input:  query.Get("input-has"),
	}}
}

// filterNames are the parameters of a filter.
var filterNames = []string{
	"id", "state", "outcome", "campaign", "queue", "owner", "of", "worker", "exit", "param", "input-has",
	"output-has", "error-has", "failure", "by", "callback", "older-than", "newer-than",
}

// onlyFilter returns the parameters that select tasks.
func onlyFilter(query url.Values) url.Values {
	kept := url.Values{}
	for _, name := range filterNames {
		for _, value := range query[name] {
			if value != "" {
				kept.Add(name, value)
			}
		}
	}
	return kept
}

// idBytes is what an id of a filter needs, because lists of ids grow and are sorted.
const idBytes = 48

// selected returns the tasks of the filter of an address, restricted to what the user may see.
func (v *visit) selected(ctx context.Context, of url.Values) (all admin.Selection, now time.Time, err error) {
	f, shards := filterOf(of), v.dashboard.shards
	if now, err = shards.Now(ctx); err != nil {
		return nil, now, err
	}
	all, err = shards.Select(f.IDs, func(ids []string) (manager.Query, error) {
		f.IDs = ids
		n := selection.CountIDs(ids)
		if n > selection.MostRefs { // their tasks are read one by one, also those that the user may not see
			return manager.Query{}, selection.ErrMany
		}
		if err := pool.Take(ctx, idBytes*n); err != nil {
			return manager.Query{}, err
		}
		q, err := f.Query(now)
		return v.own(q), cmp.Or(err, q.Validate())
	})
	return all, now, err
}

// A column is a column of the list of tasks.
type column struct{ Name, Label string }

var columns = []column{
	{"id", "Id"},
	{"state", "State"},
	{"campaign", "Campaign"},
	{"program", "Program"},
	{"queue", "Queue"},
	{"priority", "Priority"},
	{"owner", "Owner"},
	{"round", "Round"},
	{"worker", "Worker"},
	{"opened", "Opened"},
	{"entered", "In this state since"},
	{"exit", "Exit"},
	{"seconds", "Seconds"},
	{"memory", "Memory"},
	{"meta", "Meta"},
	{"input", "Input"},
}

var usualColumns = []string{"id", "state", "campaign", "program", "worker", "entered", "exit", "seconds", "input"}

// pageSizes are the possible numbers of tasks on a page.
var pageSizes = []int{50, 100, 500}

// A taskList is what the list of tasks shows.
type taskList struct {
	Problem string // what is wrong with the filter
	Tasks   []*manager.Task
	Looked  int // 0 if there may be tasks among them that the user may not see
	Next    string
	Columns []column
	Chosen  map[string]bool // names of columns
	All     []column
	Sizes   []int
	Limit   int
	Filter  url.Values
	Filters []string // the filter in words, with the parameters that remove each part
	States  []string
	Results map[bool]string // the address of the results, as CSV (false) and as JSON Lines (true)
	Verbs   []verb
}

// Title returns the title of the page.
func (l taskList) Title() string {
	if len(l.Filter) == 0 {
		return "Tasks"
	}
	return "Tasks: " + strings.Join(l.Filters, ", ")
}

func aboutTasks(v *visit) Subject { return Subject{Group: v.query.Get("campaign"), Owner: v.owner} }

func loadTasks(ctx context.Context, v *visit) (any, error) {
	l := emptyList(v.query)
	err := l.read(ctx, v)
	if task.CodeOf(err) == task.CodeInvalid {
		l.Problem, err = err.Error(), nil
	}
	return l, err
}

// emptyList returns the list that a query asks for, without its tasks.
func emptyList(query url.Values) taskList {
	l := taskList{
		Filter: onlyFilter(query), All: columns, Sizes: pageSizes, States: selection.States(), Verbs: verbs,
		Chosen: map[string]bool{},
	}
	for _, name := range filterNames {
		for _, value := range l.Filter[name] {
			l.Filters = append(l.Filters, name+" "+value)
		}
	}
	chosen := query["column"]
	if len(chosen) == 0 {
		chosen = usualColumns
	}
	for _, c := range columns {
		if slices.Contains(chosen, c.Name) {
			l.Columns, l.Chosen[c.Name] = append(l.Columns, c), true
		}
	}
	l.Limit, _ = strconv.Atoi(query.Get("limit"))
	if !slices.Contains(pageSizes, l.Limit) {
		l.Limit = pageSizes[0]
	}
	return l
}

// read reads the tasks of the list.
func (l *taskList) read(ctx context.Context, v *visit) error {
	all, _, err := v.selected(ctx, v.query)
	if err != nil {
		return err
	}
	if v.query.Get("order") == "oldest" {
		all = all.With(func(q *manager.Query) { q.Order = manager.OldestFirst })
	}
	page, err := v.dashboard.shards.Page(ctx, all, v.query.Get("cursor"), l.Limit)
	l.Tasks, l.Next = page.Tasks, page.Next
	if v.owner == "" {
		l.Looked = page.Looked
	}
	if len(all) == 1 && len(all[0].IDs) <= linkedIDs { // the API serves one namespace
		l.Results = map[bool]string{false: resultsAddress(*all[0], ""), true: resultsAddress(*all[0], "jsonl")}
	}
	return err
}

// linkedIDs is the largest number of ids in a link to results. A call with more of them would have too long a header,
// and a short range would make a page of megabytes.
const linkedIDs = 500

// resultsAddress returns the address at which the API writes the results of a query.
func resultsAddress(q manager.Query, as string) string {
	to := url.Values{}
	set := func(name string, values ...string) {
		if text := strings.Join(values, ","); text != "" {
			to.Set(name, text)
		}
	}
	var ids, states []string
	for _, id := range q.IDs {
		ids = append(ids, strconv.FormatInt(id, 10))
	}
	for _, s := range q.States {
		states = append(states, string(s))
	}
	set("ids", ids...)
	set("states", states...)
	set("outcomes", q.Outcomes...)
	if as == "" {
		set("spreadsheet", "true") // people open a CSV of a browser with one
	}
	for name, value := range map[string]string{
		"group": q.Group, "queue": q.Queue, "owner": q.Owner, "program": q.Program, "worker": q.Worker, "exit": q.Exit,
		"input": q.Input, "output": q.Output, "error": q.Error, "failure": q.Failure, "failure_by": q.FailureBy, "as": as,
	} {
		set(name, value)
	}
	if len(q.Params) > 0 {
		to["params"] = q.Params // values may have commas
	}
	for name, at := range map[string]time.Time{"since": q.Since, "before": q.Before} {
		if !at.IsZero() {
			set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	return Base + "/api/v1/results?" + to.Encode()
}

// A verb is what a user can do to tasks.
type verb struct {
	Name, Label, Done string
	rules.Verb
	Says string // what happens, on the page that asks for a confirmation
}

var verbs = []verb{
	{"retry", "Retry", "retried", rules.VerbReopen, "Finished tasks run again."},
	{"cancel", "Cancel", "cancelled", rules.VerbCancel, "Open and running tasks end. Workers end the running programs."},
	{"requeue", "Requeue", "requeued", rules.VerbRelease, "Running tasks are taken from their workers, and run again."},
	{"archive", "Archive", "archived", rules.VerbArchive, "Finished tasks are archived, without a callback."},
	{"change", "Change", "changed", rules.VerbChange, "Open tasks get new values of properties."},
	{
		"remove", "Remove", "removed", rules.VerbRemove,
		"Finished tasks are deleted, with their outputs. This cannot be undone.",
	},
}

var errNoVerb = task.NewError(task.CodeInvalid, "unknown action")

func verbOf(name string) (*verb, error) {
	for i := range verbs {
		if verbs[i].Name == name {
			return &verbs[i], nil
		}
	}
	return nil, errNoVerb
}

// A confirmation is what the page shows that asks before tasks change.
type confirmation struct {
	verb
	Count      int
	Examples   []*manager.Task
	Filters    url.Values
	Raw        string // Filters, encoded
	Properties []*task.Property
	Changed    []string // names of properties that the form changes
}

// Title returns the title of the page.
func (c confirmation) Title() string { return c.Label + " " + count(c.Count, "task") }

// exampleTasks is the number of tasks that the confirmation names.
const exampleTasks = 10

func loadConfirmation(ctx context.Context, v *visit) (any, error) {
	what, err := verbOf(v.query.Get("do"))
	if err != nil {
		return nil, err
	}
	c := confirmation{verb: *what, Filters: onlyFilter(v.query)}
	c.Raw = c.Filters.Encode()
	if len(c.Filters) == 0 {
		return nil, errNothing
	}
	if c.Verb == rules.VerbChange || c.Verb == rules.VerbReopen {
		c.Properties = changeable()
	}
	all, _, err := v.selected(ctx, v.query)
	if err != nil {
		return nil, err
	}
	examples := make(admin.Selection, len(all))
	for i, of := range v.dashboard.places {
		if all[i] == nil {
			continue
		}
		n, ids, err := selection.Count(ctx, of.manager, *all[i], exampleTasks)
		if err != nil {
			return c, err
		}
		if c.Count += n; len(ids) > 0 {
			q := v.own(manager.Query{IDs: ids})
			examples[i] = &q
		}
	}
	page, err := v.dashboard.shards.Page(ctx, examples, "", exampleTasks)
	c.Examples = page.Tasks
	return c, err
}

var errNothing = task.NewError(task.CodeInvalid, "no task is selected: tick some tasks, or set a filter")

// changeable returns the properties that a form can change.
func changeable() (all []*task.Property) {
	for i := range task.PropertyTable {
		if p := &task.PropertyTable[i]; p.CanChange() && p.Help != "" {
			all = append(all, p)
		}
	}
	return all
}

// changesOf reads the new values of properties in a form. The fields are property and value, as often as the form has
// them.
func changesOf(form url.Values, now time.Time) (all manager.Changes, err error) {
	values := form["value"]
	for i, name := range form["property"] {
		if name == "" {
			continue
		}
		at := slices.IndexFunc(changeable(), func(p *task.Property) bool { return p.Name == name })
		if at < 0 || i >= len(values) {
			return all, fmt.Errorf("%.100q: %w", name, errNoProperty)
		}
		p, text := changeable()[at], values[i]
		switch p.Unit {
		case task.UnitTime:
			var read task.Time
			read, err = selection.Time(text, task.At(now))
			text = read.String()
		case task.UnitSpan:
			var read task.Seconds
			read, err = selection.Span(text)
			text = read.String()
		}
		if err = cmp.Or(err, p.SetChange(&all, text)); err != nil {
			return all, fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return all, nil
}

var errNoProperty = task.NewError(task.CodeInvalid, "no such property can be changed")

// actOnTasks changes the tasks that the user has confirmed.
func actOnTasks(ctx context.Context, v *visit) (string, error) {
	form := v.request.PostForm
	what, err := verbOf(form.Get("do"))
	if err != nil {
		return "", err
	}
	filters, err := url.ParseQuery(form.Get("tasks"))
	if err != nil || len(onlyFilter(filters)) == 0 {
		return "", errNothing
	}
	all, now, err := v.selected(ctx, filters)
	if err != nil {
		return "", err
	}
	action := manager.Action{Verb: what.Verb, Elsewhere: form.Has("elsewhere") && what.Verb == rules.VerbRelease}
	if what.Verb == rules.VerbChange || what.Verb == rules.VerbReopen {
		if action.Changes, err = changesOf(form, now); err != nil {
			return "", err
		}
		if queue := action.Changes.Queue; queue != nil {
			if err := v.user.CheckQueue(*queue); err != nil {
				return "", err
			}
		}
	}
	refs, err := selection.Refs(v.dashboard.shards.List(ctx, all.With(selection.ForRefs)))
	if err != nil {
		return "", err
	}
	if expect := form.Get("expect"); expect != strconv.Itoa(len(refs)) {
		return "", fmt.Errorf("you have confirmed %s tasks, and now there are %d: %w", expect, len(refs),
			errOtherNumber)
	}
	done, err := v.acting().Do(ctx, action, refs...)
	if err != nil {
		return "", err
	}
	v.tell(what, done, Base+"/tasks?"+onlyFilter(filters).Encode())
	return "", nil
}

var errOtherNumber = task.NewError(task.CodeConflict, "nothing was done; go back, and confirm again")

// maxReasons is the largest number of reasons on the page about an action.
const maxReasons = 20

// tell says what an action has done to tasks.
func (v *visit) tell(what *verb, done manager.Result, back string) {
	v.outcome = &outcome{Text: count(done.Done, "task") + " " + what.Done + ".", Back: back}
	if n := len(done.Skipped); n > 0 {
		v.outcome.Text += " " + count(n, "task") + " left as they are."
	}
	for _, err := range done.Skipped[:min(len(done.Skipped), maxReasons)] {
		v.outcome.Reasons = append(v.outcome.Reasons, err.Error())
	}
}

// actOnTask changes the task of an address, if it still is in the round that the page shows: a second click or an old
// page must not run a task again that has just run. A cancellation means any round.
func actOnTask(ctx context.Context, v *visit) (string, error) {
	what, err := verbOf(v.path("do"))
	if err != nil || what.Verb == rules.VerbChange {
		return "", errNoVerb
	}
	t, _, err := v.task(ctx)
	if err != nil {
		return "", err
	}
	ref := manager.Ref{ID: t.ID, Namespace: t.Namespace, Round: manager.AnyRound}
	if what.Verb != rules.VerbCancel {
		ref.Round, err = strconv.Atoi(v.request.PostForm.Get("round"))
		if err != nil || ref.Round < 0 {
			return "", errNoRound
		}
	}
	done, err := v.acting().Do(ctx, manager.Action{Verb: what.Verb}, ref)
	switch {
	case err != nil:
		return "", err
	case len(done.Skipped) > 0:
		return "", done.Skipped[0]
	case what.Verb == rules.VerbRemove:
		return Base + "/tasks", nil
	}
	return TaskAddress(t.Name()), nil
}

var errNoRound = task.NewError(task.CodeInvalid,
	"the form does not say in which round the task is; load the page again")

// task reads the task of an address. If the user may not see it, it does not exist.
func (v *visit) task(ctx context.Context) (*manager.Task, *place, error) {
	namespace, text := manager.SplitTaskName(v.path("id"))
	id, err := selection.ID(text)
	of := v.dashboard.places[0]
	if several := v.dashboard.shards.Several(); several || namespace != "" {
		i := slices.Index(v.dashboard.shards.Namespaces(), namespace)
		if !several || i < 0 {
			return nil, nil, errNoPage
		}
		of = v.dashboard.places[i]
	}
	if err != nil {
		return nil, nil, errNoPage
	}
	t, err := v.dashboard.shards.Recent(ctx, namespace, id, v.owner)
	return t, of, err
}
