package skuld

import (
	"context"
	"net/http"

	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// An app serves the interface.
type app struct{ store *redisstate.Store }

// New returns the interface of Skuld to the tasks of a manager's namespace, below a prefix of paths.
func New(prefix string, m *manager.Manager) wire.Interface {
	a := &app{managing.Of(m).Store}
	get := call("/list_tasks", wire.ToInspect, a.firstTasks)
	get.Method = http.MethodGet
	wiping := call("/wipe", wire.ToOperate, a.wipe)
	wiping.Bulk = true
	return wire.Interface{Prefix: prefix, Routes: []wire.Route{
		call("/enqueue", wire.ToOpen, a.enqueue), call("/claim", wire.ToWork, a.claim), call("/renew", wire.ToWork, a.renew),
		call("/update", wire.ToWork, a.update), call("/complete", wire.ToWork, a.complete), call("/get_task", wire.ToSee,
			a.getTask),
		call("/count_tasks", wire.ToInspect, a.countTasks), call("/count_queue", wire.ToInspect, a.countQueue),
		call("/list_tasks", wire.ToInspect, a.listTasks), get, wiping,
	}}
}

// call returns the route of a call. An In is the type of its body.
func call[In any](path string, need wire.Need, do func(context.Context, *wire.Call, *In) (any, error)) wire.Route {
	return wire.Route{Method: http.MethodPost, Path: path, Need: need, Do: func(ctx context.Context,
		c *wire.Call,
	) (*wire.Answer, error) {
		in := new(In)
		if len(c.Body) > 0 {
			if err := c.Read(in); err != nil {
				return nil, err
			}
		}
		out, err := do(ctx, c, in)
		if err != nil {
			return nil, err
		}
		return wire.JSON(http.StatusOK, out)
	}}
}

// copies is the number of nodes that are read, and that confirm a write: the primary of Redis. Clients may ask for
// others with r and w, and the answer has the true number.
const copies = 1

// writing is the part of a call that says how many nodes should confirm its writes.
type writing struct {
	W int `json:"w"`
}

// confirmed returns a context for the writes of a call, and what then has the number of replicas that confirm them.
func (a *app) confirmed(ctx context.Context, w writing) (context.Context, *conn.Replicas, error) {
	r, err := a.store.Conn.AtMost(ctx, w.W-copies)
	return conn.WithReplicas(ctx, r), r, err
}

// nodes returns the number of nodes that have confirmed the last write.
func nodes(r *conn.Replicas) int { return copies + int(r.Confirmed.Load()) }

// A written is the answer to a call that changes a task.
type written struct {
	ID    string     `json:"id,omitempty"`
	Claim *wireClaim `json:"claim,omitempty"`
	W     int        `json:"w"`
}

type counted struct {
	Count int64 `json:"count"`
}

type nothing struct{}
