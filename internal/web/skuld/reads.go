package skuld

import (
	"cmp"
	"context"
	"strconv"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

type getting struct {
	ID    string `json:"id"`
	Claim int    `json:"claim"` // together with Seq, the last update that the client has seen
	Seq   *int   `json:"seq"`
}

type got struct {
	Task wireTask `json:"task"`
	R    int      `json:"r"`
}

// getTask returns a task with its last claims and their updates. If Redis does not have an update that the client has
// seen, because Redis has lost writes, it returns an error instead of an older state.
func (a *app) getTask(ctx context.Context, c *wire.Call, in *getting) (any, error) {
	s := a.store
	t, err := find(ctx, s, in.ID, c.Token.Owner(), mostClaims)
	if err != nil {
		return nil, err
	}
	if in.Seq != nil {
		known, err := updatesOf(ctx, s, t.ID, max(in.Claim, 0))
		if err != nil {
			return nil, err
		}
		if *in.Seq >= len(known) {
			return nil, conflict("the task has no update %d of claim %d: Redis has lost it", *in.Seq, in.Claim)
		}
	}
	out, err := whole(ctx, s, t)
	return got{out, copies}, err
}

// whole returns a task with the last updates of its last claims.
func whole(ctx context.Context, s *redisstate.Store, t *task.Task) (wireTask, error) {
	out := view(t, mostClaims)
	if len(out.Claims) == 0 {
		return out, nil
	}
	updates, err := s.Updates.Last(ctx, t.ID, out.ClaimsFrom, 10*mostUpdates)
	for _, u := range updates {
		if at := u.Round - out.ClaimsFrom; at < len(out.Claims) {
			of := &out.Claims[at]
			if len(of.Updates) == 0 {
				of.UpdatesFrom = u.Number - 1
			}
			of.Updates = append(of.Updates, messageOf(u.Line))
		}
	}
	return out, err
}

// countTasks counts all tasks, also completed ones.
func (a *app) countTasks(ctx context.Context, c *wire.Call, _ *nothing) (any, error) {
	counts, err := c.Manager.Counts(ctx, group)
	return counted{counts.Total()}, err
}

type inQueue struct {
	Queue string `json:"queue"`
}

// countQueue counts the tasks of a queue that can be claimed, now or when their time has come.
func (a *app) countQueue(ctx context.Context, c *wire.Call, in *inQueue) (any, error) {
	p := class.Requirement{Queue: cmp.Or(in.Queue, class.DefaultQueue), Handler: program}
	n, err := a.store.Counters.OpenWith(ctx, p)
	return counted{n}, err
}

const (
	mostListed = 1000
	listBytes  = 8 << 20 // of data in one answer
)

// oldestFirst selects all tasks, in the order in which they were enqueued.
var oldestFirst = manager.Query{Group: group, Order: manager.ByID}

type listing struct {
	Limit  int    `json:"limit"`
	Cursor string `json:"cursor"`
}

type listed struct {
	Tasks []wireTask `json:"tasks"`
	Next  string     `json:"next,omitempty"` // the cursor of the next page
}

// listTasks returns a page of tasks, in the order in which they were enqueued, with their last claims.
func (a *app) listTasks(ctx context.Context, c *wire.Call, in *listing) (any, error) {
	return a.list(ctx, c, in)
}

func (a *app) list(ctx context.Context, c *wire.Call, in *listing) (out listed, err error) {
	if in.Limit < 0 || in.Limit > mostListed {
		return out, wire.Invalid("limit: want 1 to " + strconv.Itoa(mostListed))
	}
	page, err := c.Manager.Page(ctx, oldestFirst, in.Cursor, cmp.Or(in.Limit, mostListed))
	if err != nil {
		return out, err
	}
	want := facts(listClaims)
	want.MaxBytes = listBytes
	stored, err := a.store.Read(ctx, idsOf(page.Tasks), want)
	if err == nil && len(stored) < len(page.Tasks) {
		page, err = c.Manager.Page(ctx, oldestFirst, in.Cursor, len(stored)) // for its cursor
	}
	out = listed{Tasks: []wireTask{}, Next: page.Next}
	for _, x := range stored {
		if idOf(x.Task) != "" {
			out.Tasks = append(out.Tasks, view(x.Task, listClaims))
		}
	}
	return out, err
}

func idsOf(tasks []*manager.Task) (ids []int64) {
	for _, t := range tasks {
		ids = append(ids, t.ID)
	}
	return ids
}

// firstTasks returns the first tasks, as the only HTTP route of Skuld itself does.
func (a *app) firstTasks(ctx context.Context, c *wire.Call, _ *nothing) (any, error) {
	out, err := a.list(ctx, c, &listing{})
	return out.Tasks, err
}

// wipe removes all tasks, also those that run. Tasks that are enqueued meanwhile may stay.
func (a *app) wipe(ctx context.Context, c *wire.Call, _ *nothing) (any, error) {
	removed := 0
	for {
		counts, err := c.Manager.Counts(ctx, group)
		if err != nil || counts.Total() == 0 {
			return struct {
				Removed int `json:"removed"`
			}{removed}, err
		}
		page, err := c.Manager.Page(ctx, oldestFirst, "", mostListed)
		if err != nil {
			return nil, err
		}
		n, err := a.removeAll(ctx, c, page.Tasks)
		if err == nil && n == 0 {
			err = conflict("%d tasks are left, which another call has changed; repeat the call", counts.Total())
		}
		if removed += n; err != nil {
			return nil, err
		}
	}
}

// removeAll ends tasks, and removes them.
func (a *app) removeAll(ctx context.Context, c *wire.Call, tasks []*manager.Task) (int, error) {
	ids, refs := idsOf(tasks), make([]manager.Ref, len(tasks))
	for i, id := range ids {
		refs[i] = manager.Ref{ID: id, Round: manager.AnyRound}
	}
	if _, err := c.Manager.Cancel(ctx, refs...); err != nil {
		return 0, err
	}
	done, err := c.Manager.Remove(ctx, refs...)
	return done.Done, err
}
