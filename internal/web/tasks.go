package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/manager"
)

// maxTasks is the largest number of tasks that one call opens or returns.
const (
	maxTasks    = 10_000
	maxListed   = 1000
	usualListed = 100
)

func (a *api) addTasks() {
	add(a, route{http.MethodPost, "/tasks", "open-tasks", "Open one task, or up to 10,000", toOpen, true}, a.openTasks)
	add(a, route{http.MethodGet, "/tasks", "list-tasks", "List tasks", toSee, false}, a.listTasks)
	a.alsoAnswers("list-tasks", jsonLines)
	schema := a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[taskList](), true, "")
	get := a.huma.OpenAPI().Paths[base+"/tasks"].Get
	get.Responses["200"].Content["application/json"] = &huma.MediaType{Schema: schema}
	add(a, route{http.MethodGet, "/tasks/{id}", "get-task", "Read a task with all of its rounds", toSee, false},
		a.getTask)
	add(a, route{http.MethodGet, "/tasks/{id}/output", "get-output", "Read what a round has printed", toSee, false},
		a.getOutput)
}

// definitions are the body of a call that opens tasks: an object, a list of objects, or JSON Lines.
type definitions []manager.Definition

func (d *definitions) UnmarshalJSON(data []byte) error {
	return readMany(data, (*[]manager.Definition)(d))
}

// readMany reads an object, or a list of objects. It reads at most one object more than a call may have, because an
// object may need far more memory than its text.
func readMany[T any](data []byte, all *[]T) error {
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '{' {
		*all = make([]T, 1)
		return readJSON(data, &(*all)[0])
	}
	list := json.NewDecoder(bytes.NewReader(data))
	list.DisallowUnknownFields()
	if begin, err := list.Token(); err != nil || begin != json.Delim('[') {
		return readJSON(data, all) // returns the error
	}
	for list.More() && len(*all) <= maxTasks {
		var one T
		if err := list.Decode(&one); err != nil {
			return err
		}
		*all = append(*all, one)
	}
	return nil
}

type openInput struct {
	Key      string `header:"Idempotency-Key" maxLength:"200" doc:"a text of your own; a second call with this key and this body, within a day, opens nothing twice"`
	Replicas int    `query:"replicas" minimum:"0" maximum:"10" doc:"how many replicas of Redis must confirm the new tasks; 0 means what the server's configuration says"`
	Body     definitions
}

type openOutput struct{ Body opened }

func (*openOutput) status() int { return http.StatusCreated }

// opened is the answer to a call that opens tasks.
type opened struct {
	IDs      []int64 `json:"ids" doc:"the ids of the tasks, in the order of the definitions"`
	Existing []int64 `json:"existing,omitempty" doc:"the ids of tasks that existed already, because they hold a unique key"`
	FailOn   string  `json:"fail_on" doc:"the rule by which rounds fail, for tasks whose definitions have none"`
}

func (a *api) openTasks(ctx context.Context, c *call, in *openInput) (*openOutput, error) {
	switch n := len(in.Body); {
	case n == 0:
		return nil, refuse(string(task.CodeInvalid), "no tasks to open")
	case n > maxTasks:
		return nil, refuse(tooLarge, fmt.Sprintf("more than %d tasks in one call", maxTasks))
	}
	if err := a.claim(ctx, c, in.Body); err != nil {
		return nil, err
	}
	if in.Replicas > 0 {
		ctx = manager.WithReplicas(ctx, in.Replicas)
	}
	open := c.manager.Open
	if in.Key != "" {
		key := c.onceKey(in.Key)
		open = func(ctx context.Context, d ...manager.Definition) ([]*manager.Task, error) {
			return c.manager.OpenOnce(ctx, key, d...)
		}
	}
	tasks, err := open(ctx, in.Body...)
	if err != nil {
		return nil, partly(len(tasks), err)
	}
	return &openOutput{a.openedBy(tasks)}, nil
}

// onceKey returns the key of [manager.Manager.OpenOnce] for an Idempotency-Key. The keys of other tokens and routes
// differ.
func (c *call) onceKey(key string) string { return c.token.Name + " " + c.request.URL.Path + " " + key }

// openedBy returns the answer for tasks that were opened.
func (a *api) openedBy(tasks []*manager.Task) opened {
	o := opened{IDs: []int64{}, FailOn: string(a.defaults.FailOn)}
	for _, t := range tasks {
		o.IDs = append(o.IDs, t.ID)
		if t.Existing {
			o.Existing = append(o.Existing, t.ID)
		}
	}
	return o
}

// claim makes new tasks belong to the token of the call, and returns an error if the token may not open them.
func (a *api) claim(ctx context.Context, c *call, all []manager.Definition) error {
	for i := range all {
		d := &all[i]
		if err := c.token.Claim(d); err != nil {
			return fmt.Errorf("task %d: %w", i+1, err)
		}
		if d.CorrelationID == "" {
			d.CorrelationID = c.id
		}
	}
	return a.checkDependencies(ctx, c, all)
}

// partly adds to an error how many tasks the call has opened or changed before it.
func partly(n int, err error) error {
	if n == 0 {
		return err
	}
	return fmt.Errorf("after %d tasks: %w", n, err)
}

// checkDependencies returns an error if a new task would wait for the task of another token, and so read its outputs.
func (a *api) checkDependencies(ctx context.Context, c *call, all []manager.Definition) error {
	owner := c.token.Owner()
	if owner == "" {
		return nil
	}
	needed := map[int64]bool{}
	var ids []int64
	for i := range all {
		for _, after := range []*manager.Dependencies{all[i].After, all[i].AfterAny} {
			for _, id := range tasksOf(after) {
				if !needed[id] {
					needed[id], ids = true, append(ids, id)
				}
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	for t, err := range c.manager.List(ctx, manager.Query{IDs: ids, Owner: owner}) {
		if err != nil {
			return err
		}
		delete(needed, t.ID)
	}
	for id := range needed {
		return fmt.Errorf("wait for task %d: %w", id, task.ErrNoTask)
	}
	return nil
}

func tasksOf(after *manager.Dependencies) []int64 {
	if after == nil {
		return nil
	}
	return after.Tasks
}

// A Filter has the conditions of a [task.Query] as parameters of a path. It is exported only because the library that
// reads parameters needs it.
type Filter struct {
	IDs      []int64   `query:"ids" doc:"tasks with one of these ids"`
	States   []string  `query:"states" doc:"tasks in one of these states"`
	Group    string    `query:"group" doc:"tasks of this campaign"`
	Outcomes []string  `query:"outcomes" doc:"tasks with one of these outcomes"`
	Queue    string    `query:"queue" doc:"tasks of this queue; default is the queue of the tasks without a queue"`
	Owner    string    `query:"owner" doc:"tasks that this token has opened"`
	Program  string    `query:"program" doc:"tasks of this program; * and ? are wildcards"`
	Worker   string    `query:"worker" doc:"tasks whose last run was on this worker"`
	Exit     string    `query:"exit" doc:"tasks whose last run ended like this: 0 to 255, signal: killed, or signal for any signal"`
	Params   []string  `query:"params,explode" doc:"tasks with this parameter, as NAME=VALUE, such as rate=0.5; the value is the text that the program got. Repeat it for several parameters"`
	Input    string    `query:"input" doc:"tasks whose input contains this text"`
	Since    time.Time `query:"since" doc:"tasks that entered their state at this time or later"`
	Before   time.Time `query:"before" doc:"tasks that entered their state before this time"`
	Output   string    `query:"output" doc:"tasks whose last run printed this text to stdout"`
	Error    string    `query:"error" doc:"tasks whose last run printed this text to stderr"`
	Failure  string    `query:"failure" doc:"tasks whose last failure belongs to this failure group"`
	Callback bool      `query:"callback_failed" doc:"tasks whose callbacks have failed for good"`
	By       string    `query:"failure_by" maxLength:"200" doc:"the line of stderr by which failures are grouped: first-line, last-line, or a regular expression; without it, the most informative line"`
}

// query returns the query for a call. If the caller may only see its own tasks, the query selects no others.
func (f *Filter) query(c *call) manager.Query {
	q := manager.Query{
		IDs: f.IDs, Group: f.Group, Outcomes: f.Outcomes, Queue: f.Queue, Owner: f.Owner, Program: f.Program,
		Worker: f.Worker, Exit: f.Exit, Params: f.Params, Input: f.Input,
		Since: f.Since, Before: f.Before, Output: f.Output, Error: f.Error, Failure: f.Failure, FailureBy: f.By,
		CallbackFailed: f.Callback,
	}
	for _, s := range f.States {
		q.States = append(q.States, task.State(s))
	}
	return c.own(q)
}

// own returns the part of a query that the caller may see.
func (c *call) own(q manager.Query) manager.Query {
	if owner := c.token.Owner(); owner != "" {
		q.Owner = owner
	}
	return q
}

type listInput struct {
	Filter
	Order  string `query:"order" enum:"oldest_first" doc:"without this parameter, the newest tasks come first"`
	Read   string `query:"read" enum:"result,output" doc:"which texts of the last run the list has"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"the largest number of tasks"`
	Cursor string `query:"cursor" maxLength:"1000" doc:"the cursor that the last page returned as next"`
}

// taskList is a page of tasks.
type taskList struct {
	Tasks []taskView `json:"tasks"`
	Next  string     `json:"next,omitempty" doc:"the cursor of the next page; missing on the last page. A page may have few tasks, or none, although more pages follow."`
}

// A listOutput is a taskList that is written task by task, because its JSON may be far larger than its texts.
type listOutput struct {
	Type string `header:"Content-Type"`
	Body func(huma.Context)
}

func (a *api) listTasks(ctx context.Context, c *call, in *listInput) (*listOutput, error) {
	q := in.query(c)
	q.Order, q.Read = manager.Order(in.Order), manager.Read(in.Read)
	if c.wants(jsonLines) {
		return nil, a.streamTasks(c, q)
	}
	page, err := c.manager.Page(ctx, q, in.Cursor, in.Limit)
	if err != nil {
		return nil, err
	}
	// fails only if the client has gone
	return &listOutput{"application/json", func(ctx huma.Context) { _ = writeList(ctx.BodyWriter(), page) }}, nil
}

// writeList writes a taskList.
func writeList(w io.Writer, page manager.Page) error {
	to := bufio.NewWriterSize(w, writeBuffer)
	next, err := json.Marshal(page.Next)
	if err != nil {
		return err
	}
	before := `{"tasks":[`
	for _, t := range page.Tasks {
		text, err := t.MarshalJSON()
		if err != nil {
			return err
		}
		_, _ = to.WriteString(before) // its error is also that of Flush
		_, _ = to.Write(text)
		before = ","
	}
	if len(page.Tasks) == 0 {
		_, _ = to.WriteString(before)
	}
	_, _ = to.WriteString("]")
	if page.Next != "" {
		_, _ = to.WriteString(`,"next":` + string(next))
	}
	_, _ = to.WriteString("}\n")
	return to.Flush()
}

// streamTasks writes all tasks of a query as JSON Lines.
func (a *api) streamTasks(c *call, q manager.Query) error {
	return a.stream(c, jsonLines, func(s *stream) error {
		out := bufio.NewWriterSize(s, writeBuffer)
		each := wire.Encoder(out)
		for t, err := range c.manager.List(s.ctx, q) {
			if err != nil {
				return err
			}
			if err := each.Encode(t); err != nil {
				return err
			}
		}
		return out.Flush()
	})
}

type idInput struct {
	ID int64 `path:"id" minimum:"1" doc:"the id of the task"`
}

type taskOutput struct {
	ETag string `header:"ETag" doc:"changes with the state, the round and the properties of the task, but not with its output and progress"`
	Body taskView
}

func (a *api) getTask(ctx context.Context, c *call, in *idInput) (*taskOutput, error) {
	t, err := a.admin.Recent(ctx, in.ID, c.token.Owner())
	if err != nil {
		return nil, err
	}
	return &taskOutput{etag(t), taskView{t}}, nil
}

// summary reads the summary of a task. If the caller may not see it, it does not exist.
func (a *api) summary(ctx context.Context, c *call, id int64) (*manager.Task, error) {
	for t, err := range c.manager.List(ctx, c.own(manager.Query{IDs: []int64{id}})) {
		return t, err
	}
	return nil, fmt.Errorf("task %d: %w", id, task.ErrNoTask)
}

func etag(t *manager.Task) string { return fmt.Sprintf(`"%s-%d-%d"`, t.State, t.Round, t.Revision) }

type outputInput struct {
	ID     int64  `path:"id" minimum:"1" doc:"the id of the task"`
	Stream string `query:"stream" enum:"stdout,stderr,result" default:"stdout" doc:"what to read"`
	Follow bool   `query:"follow" doc:"the output as it arrives, stdout and stderr together, until the round ends"`
	Round  int    `query:"round" minimum:"-1" default:"-1" doc:"the number of the round; without it, the last round that ran, or with follow the current round"`
}

type outputOutput struct {
	Type string `header:"Content-Type"`
	Body func(huma.Context)
}

func (a *api) getOutput(ctx context.Context, c *call, in *outputInput) (*outputOutput, error) {
	if in.Follow {
		return nil, a.followOutput(ctx, c, in)
	}
	if _, err := a.summary(ctx, c, in.ID); err != nil {
		return nil, err
	}
	read := a.admin.LastRun
	if in.Round >= 0 {
		read = a.roundOf(in.Round)
	}
	_, r, err := read(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if r == nil || in.Round < 0 && r.Worker == "" {
		return nil, admin.ErrNoRound
	}
	text := map[string]string{"stdout": r.Output, "stderr": r.Error, "result": r.Result}[in.Stream]
	kind := "application/octet-stream"
	switch {
	case in.Stream == "result" && text != "":
		kind = "application/json"
	case utf8.ValidString(text):
		kind = plainText
	}
	return &outputOutput{kind, func(ctx huma.Context) { _, _ = ctx.BodyWriter().Write([]byte(text)) }}, nil
}

// roundOf returns the function that reads a round.
func (a *api) roundOf(n int) func(context.Context, int64) (*manager.Task, *manager.Round, error) {
	return func(ctx context.Context, id int64) (*manager.Task, *manager.Round, error) {
		return a.admin.Round(ctx, id, n)
	}
}

const plainText = "text/plain; charset=utf-8"

// missingOutput is the trailer of a followed output in which some text may be missing.
const missingOutput = http.TrailerPrefix + "X-Output-Incomplete"

// followOutput writes the output of a round as it arrives.
func (a *api) followOutput(ctx context.Context, c *call, in *outputInput) error {
	if in.Stream != "stdout" {
		return refuse(string(task.CodeInvalid),
			"a followed output is stdout and stderr together, so stream must be stdout")
	}
	if _, err := a.summary(ctx, c, in.ID); err != nil {
		return err
	}
	read := a.admin.CurrentRound
	if in.Round >= 0 {
		read = a.roundOf(in.Round)
	}
	t, r, err := read(ctx, in.ID)
	if err != nil {
		return err
	}
	return a.stream(c, plainText, func(s *stream) error {
		c.WriteHeader(http.StatusOK)
		if err := s.flush(); err != nil {
			return err
		}
		for part, err := range a.admin.FollowOutput(s.ctx, t, r) {
			if err != nil {
				return err
			}
			if _, err := s.Write([]byte(part.Text)); err != nil {
				return err
			}
			if err := s.flush(); err != nil {
				return err
			}
			if part.Skipped || part.Unknown {
				c.Header().Set(missingOutput, "true")
			}
		}
		return nil
	})
}
