package worker

import (
	"context"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/tdf-framework/tdf/internal/blob"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A protocol is how a worker takes part in TDF: a *[broker.Direct], or over the HTTP API, a Remote of
// internal/broker/remote. The calls wait while Redis or the API is away.
type protocol interface {
	TakeName(ctx context.Context, w presence.WorkerInfo, o broker.Takeover) (drained string, err error)
	WorkerHeartbeat(ctx context.Context, w presence.WorkerInfo) (drained string, err error)
	GiveUp(ctx context.Context) (int, error)
	Gone(ctx context.Context, names []string) (gone []string, err error)

	Exchange(ctx, claiming context.Context, claim *redisstate.ClaimParams, reports ...*broker.Delivery) (
		redisstate.ClaimResult, error)
	Await(ctx, claiming context.Context, claim redisstate.ClaimParams, longest time.Duration) (woken bool,
		c redisstate.ClaimResult, err error)
	Confirms(ctx context.Context) bool

	Earlier(ctx context.Context, t *task.Task) (checkpoint, lastError string, err error)
	WriteDependencies(ctx context.Context, t *task.Task, to io.Writer) (unread, err error)
	Blobs(ctx context.Context) (blob.Store, error)
	Archive(ctx context.Context, t *task.Task, sha256 string) (io.ReadCloser, error)

	Renew(ctx context.Context, renewals ...redisstate.LeaseRenewal) (redisstate.RenewResult, error)

	Close()
}

// newOffer returns which tasks the worker claims, and in which order (docs/lifecycle.md, "Queues"). A worker with
// handlers runs only tasks without a source.
func (w *Worker) newOffer() class.Offer {
	return class.Offer{
		Queues: w.cfg.Queues, Tags: w.cfg.Tags,
		Handlers: slices.Sorted(maps.Keys(w.handlers)), Programs: len(w.handlers) == 0, Anything: w.runner != nil,
		Group: w.cfg.Group, Resources: w.offeredResources(),
	}
}
