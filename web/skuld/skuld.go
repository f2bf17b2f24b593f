package skuld

import (
	"context"
	"net/http"

	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/web/wire"
)

// New returns the interface of Skuld, below a prefix of paths.
func New(prefix string) wire.Interface {
	get := call("/list_tasks", wire.ToInspect, firstTasks)
	get.Method = http.MethodGet
	wiping := call("/wipe", wire.ToOperate, wipe)
	wiping.Bulk = true
	return wire.Interface{Prefix: prefix, Routes: []wire.Route{
		call("/enqueue", wire.ToOpen, enqueue), call("/claim", wire.ToWork, claim), call("/renew", wire.ToWork, renew),
		call("/update", wire.ToWork, update), call("/complete", wire.ToWork, complete), call("/get_task", wire.ToSee,
			getTask),
		call("/count_tasks", wire.ToInspect, countTasks), call("/count_queue", wire.ToInspect, countQueue),
		call("/list_tasks", wire.ToInspect, listTasks), get, wiping,
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

func storeOf(c *wire.Call) *redisstate.Store { return c.Manager.Internals().Store }

// copies is the number of nodes that confirm a write and that are read: there is one Redis. Clients may ask for others
// with w and r, and the answer has the true number.
const copies = 1

// A written is the answer to a call that changes a task.
type written struct {
	ID    string `json:"id,omitempty"`
	Claim *Claim `json:"claim,omitempty"`
	W     int    `json:"w"`
}

type counted struct {
	Count int64 `json:"count"`
}

type nothing struct{}
