package taskstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/redisstate"
)

// An update is the body of a call that changes tasks.
type update struct {
	Client  int32    `json:"clientid"`
	Adds    []change `json:"adds"`
	Updates []change `json:"updates"`
	Deletes []int64  `json:"deletes"`
	Depends []int64  `json:"depends"`
}

// A claim is the body of a call that claims a task.
type claim struct {
	Client  int32   `json:"clientid"`
	Group   string  `json:"group"`
	Nanos   int64   `json:"duration"` // how long the client owns the task
	Depends []int64 `json:"depends"`
}

// A response is the answer to both calls. Error is nil if the call succeeded.
type response struct {
	Tasks []version `json:"tasks"`
	Error *refusal  `json:"error"`
}

// A refusal has all reasons why nothing has changed.
type refusal struct {
	Changes []int64  `json:"changes"` // ids of updates that do not exist
	Deletes []int64  `json:"deletes"`
	Depends []int64  `json:"depends"`
	Owned   []int64  `json:"owned"` // ids of updates and deletes that another client owns
	Bugs    []string `json:"bugs"`
}

func newRefusal() *refusal {
	return &refusal{[]int64{}, []int64{}, []int64{}, []int64{}, []string{}}
}

func (r *refusal) orNil() *refusal {
	if len(r.Changes)+len(r.Deletes)+len(r.Depends)+len(r.Owned)+len(r.Bugs) == 0 {
		return nil
	}
	return r
}

const (
	mostChanged = 1000 // tasks in one call
	mostTries   = 20   // of a call whose tasks change while it reads them, or of a claim that others overtake
)

// bodyOf reads the JSON of the body, or of a field of a form.
func bodyOf(c *wire.Call, field string, v any) error {
	if text := bytes.TrimSpace(c.Body); len(text) > 0 && text[0] != '{' {
		form, err := url.ParseQuery(string(text))
		if err != nil || form.Get(field) == "" {
			return wire.Invalid("want a JSON object, or a form with the field " + field)
		}
		return c.ReadText("the field "+field, []byte(form.Get(field)), v)
	}
	return c.Read(v)
}

func (a *app) postUpdate(ctx context.Context, c *wire.Call) (*wire.Answer, error) {
	var u update
	if err := bodyOf(c, "update", &u); err != nil {
		return nil, err
	}
	if len(u.Adds)+len(u.Updates)+len(u.Deletes)+len(u.Depends) > mostChanged {
		return nil, wire.Invalid(fmt.Sprintf("want at most %d tasks in one call", mostChanged))
	}
	if err := u.checkTwice(); err != nil {
		return nil, err
	}
	s := a.begin(c)
	for range mostTries {
		p, err := s.plan(ctx, &u)
		if err != nil {
			return nil, err
		}
		if p.refused.orNil() != nil {
			return wire.JSON(http.StatusOK, response{[]version{}, p.refused})
		}
		tasks, changed, err := s.commit(ctx, p)
		if err != nil || !changed {
			return answer(tasks, p, err)
		}
	}
	return nil, task.NewError(task.CodeUnavailable, "the tasks of the call change all the time")
}

func answer(tasks []version, p *plan, err error) (*wire.Answer, error) {
	if err != nil {
		return nil, err
	}
	return wire.JSON(http.StatusOK, response{tasks, p.refused.orNil()})
}

// checkTwice returns an error if a call changes or deletes a task twice.
func (u *update) checkTwice() error {
	ids := u.Deletes[:len(u.Deletes):len(u.Deletes)]
	for i := range u.Updates {
		ids = append(ids, u.Updates[i].ID)
	}
	seen := map[int64]bool{}
	for _, id := range ids {
		if seen[id] {
			return wire.Invalid(fmt.Sprintf("the id %d occurs twice", id))
		}
		seen[id] = true
	}
	return nil
}

// A plan is a step of Redis, and the versions that it makes.
type plan struct {
	unit    redisstate.Unit
	owner   int32
	refused *refusal
}

// open adds a new version. The argument token is the owner of the task in TDF.
func (s *request) open(p *plan, d task.Properties, token string) error {
	d.Owner = token
	if err := s.call.Token.CheckGroup(d.Group); err != nil {
		return err
	}
	if err := s.call.Token.CheckQueue(Program); err != nil {
		return err
	}
	if d.Group == "" {
		return wire.Invalid("a task without a group")
	}
	if err := d.Validate(); err != nil {
		return err
	}
	p.unit.Open = append(p.unit.Open, d)
	return nil
}

// plan reads the tasks of a call, and makes a plan for it.
func (s *request) plan(ctx context.Context, u *update) (*plan, error) {
	ids := make([]int64, 0, len(u.Updates)+len(u.Deletes)+len(u.Depends))
	for i := range u.Updates {
		ids = append(ids, u.Updates[i].ID)
	}
	ids = append(append(ids, u.Deletes...), u.Depends...)
	tasks, now, err := s.read(ctx, ids)
	if err != nil {
		return nil, err
	}
	p := &plan{owner: u.Client, refused: newRefusal()}
	for i := range u.Adds {
		if err := s.open(p, properties(u.Adds[i].Group, u.Adds[i].Data, u.Adds[i].available(now), u.Client),
			s.call.Token.Owner()); err != nil {
			return nil, err
		}
	}
	replaced := map[int64]bool{}
	for i := range u.Updates {
		if !p.replace(u.Updates[i].ID, tasks[i], now, &p.refused.Changes, replaced) {
			continue
		}
		if err := s.open(p, properties(tasks[i].Group, u.Updates[i].Data, u.Updates[i].available(now), u.Client),
			tasks[i].Owner); err != nil {
			return nil, err
		}
	}
	for i, id := range u.Deletes {
		p.replace(id, tasks[len(u.Updates)+i], now, &p.refused.Deletes, replaced)
	}
	p.require(u.Depends, tasks[len(u.Updates)+len(u.Deletes):], replaced)
	return p, nil
}

// replace removes the old version of a task, or refuses the plan. Without the task, it adds the id to the list missing.
func (p *plan) replace(id int64, t *task.Task, now task.Time, missing *[]int64, replaced map[int64]bool) bool {
	switch {
	case t == nil:
		*missing = append(*missing, id)
		return false
	case t.StartAfter > now && ownerOf(t) != p.owner:
		p.refused.Owned = append(p.refused.Owned, id)
		return false
	}
	m, err := rules.Replace(t)
	if err != nil {
		p.refused.Bugs = append(p.refused.Bugs, err.Error())
		return false
	}
	replaced[id] = true
	p.unit.Moves = append(p.unit.Moves, m.IfUnchanged(t))
	return true
}

// require makes the plan require that tasks are unchanged.
func (p *plan) require(ids []int64, tasks []*task.Task, already map[int64]bool) {
	for i, id := range ids {
		switch t := tasks[i]; {
		case t == nil:
			p.refused.Depends = append(p.refused.Depends, id)
		case !already[id]:
			already[id] = true
			p.unit.Moves = append(p.unit.Moves, rules.Require(t))
		}
	}
}

// commit carries out a plan, and returns the new versions. If tasks have changed since they were read, it returns true
// for changed, and has done nothing.
func (s *request) commit(ctx context.Context, p *plan) (tasks []version, changed bool, err error) {
	tasks = []version{}
	if len(p.unit.Moves)+len(p.unit.Open) == 0 {
		return tasks, false, nil
	}
	if p.unit.Size() > 4<<20 {
		return nil, false, wire.Invalid("the tasks of one call have more than 4 MiB of data")
	}
	outcomes, err := s.store.Apply(ctx, s.call.Token.Holder(), p.unit)
	if err != nil {
		return nil, false, err
	}
	o := outcomes[0]
	for _, reason := range o.Refused {
		if !errors.As(reason, new(*rules.StateError)) {
			p.refused.Bugs = append(p.refused.Bugs, reason.Error())
		}
	}
	if o.Err != nil {
		return tasks, len(p.refused.Bugs) == 0, nil
	}
	for i := range p.unit.Open {
		tasks = append(tasks, versionOf(o.IDs[i], &p.unit.Open[i], p.owner))
	}
	return tasks, false, nil
}

func (a *app) postClaim(ctx context.Context, c *wire.Call) (*wire.Answer, error) {
	var k claim
	if err := bodyOf(c, "claim", &k); err != nil {
		return nil, err
	}
	if err := c.Token.CheckGroup(k.Group); err != nil {
		return nil, err
	}
	if len(k.Depends) > mostChanged-1 {
		return nil, wire.Invalid(fmt.Sprintf("want at most %d tasks in depends", mostChanged-1))
	}
	s := a.begin(c)
	for range mostTries {
		p, found, err := s.planClaim(ctx, &k)
		switch {
		case err != nil:
			return nil, err
		case p.refused.orNil() != nil, !found:
			return answer([]version{}, p, nil)
		case len(p.unit.Open) == 0: // another client has changed the task since it was found
			continue
		}
		tasks, changed, err := s.commit(ctx, p)
		if err != nil || !changed {
			return answer(tasks, p, err)
		}
	}
	return nil, task.NewError(task.CodeUnavailable, "other claims were always faster")
}

// planClaim makes a plan for the claim of a random task. It reports whether it has found one.
func (s *request) planClaim(ctx context.Context, k *claim) (p *plan, found bool, err error) {
	now, err := s.store.Now(ctx)
	if err != nil {
		return nil, false, err
	}
	id, err := s.store.OpenSets.Any(ctx, placeOf(k.Group), now)
	if err != nil {
		return nil, false, err
	}
	tasks, now, err := s.read(ctx, append([]int64{id}, k.Depends...))
	if err != nil {
		return nil, false, err
	}
	p = &plan{owner: k.Client, refused: newRefusal()}
	replaced := map[int64]bool{}
	if t := tasks[0]; t != nil && t.StartAfter <= now && p.replace(id, t, now, &p.refused.Changes, replaced) {
		until := change{Nanos: min(k.Nanos, -k.Nanos)} // from now
		d := properties(t.Group, versionOf(id, &t.Properties, 0).Data, until.available(now), k.Client)
		if err := s.open(p, d, t.Owner); err != nil {
			return nil, false, err
		}
	}
	p.require(k.Depends, tasks[1:], replaced)
	return p, id != 0, nil
}
