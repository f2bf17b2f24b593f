package taskmaster

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// Program is the program of all tasks of the interface. A worker of TDF with a handler for it runs these tasks, too.
const Program = "taskmaster"

// groupPrefix is the beginning of the group of a queue's tasks, by which they are counted and listed.
const groupPrefix = "taskmaster/"

// Options configure the interface.
type Options struct {
	Prefix string // of the paths

	// A worker without a heartbeat for longer than Stale is stale, and for longer than Dead, it is dead.
	Stale, Dead time.Duration

	Timeout time.Duration // how long a claim waits for an answer of Redis
	Log     *slog.Logger
}

// An app serves the interface.
type app struct {
	Options
	store  *redisstate.Store
	broker *broker.Broker
	ids    ids
	retry  task.Seconds // base of the back-off
	keep   task.Properties

	counting sync.Mutex
	counted  task.Time // the time up to which this process has counted dead workers
}

// Defaults of Taskmaster, for keys of [task_defaults] that have their own defaults.
const (
	usualRetry = task.Seconds(1)
	usualKeep  = task.Seconds(7 * 24 * 60 * 60)
)

// New returns the interface to the tasks of a manager's namespace. From the manager's TaskDefaults, it takes the
// back-off and the retention periods.
func New(m *manager.Manager, o Options) wire.Interface {
	in := managing.Of(m)
	a := &app{
		Options: o, store: in.Store, broker: broker.New(in.Store, broker.Options{Answer: o.Timeout, Log: o.Log}),
		ids:   ids{in.Config.Namespace},
		retry: usualRetry, keep: in.Config.TaskDefaults,
	}
	if a.keep.Backoff > 0 {
		a.retry = a.keep.Backoff
	}
	for _, span := range []*task.Seconds{&a.keep.KeepFinished, &a.keep.KeepArchived} {
		if *span == task.Forever {
			*span = usualKeep
		}
	}
	return wire.Interface{Prefix: o.Prefix, Routes: []wire.Route{
		{Method: http.MethodPost, Path: "/tasks/v1", Need: wire.ToOpen, Do: a.submit},
		{Method: http.MethodGet, Path: "/tasks/v1", Need: wire.ToSee, Bulk: true, Do: a.list},
		{Method: http.MethodGet, Path: "/tasks/v1/{id}", Need: wire.ToSee, Do: a.get},
		{Method: http.MethodPost, Path: "/tasks/v1/claim", Need: wire.ToWork, Do: a.claim},
		{Method: http.MethodPost, Path: "/tasks/v1/{id}/complete", Need: wire.ToWork, Do: a.complete},
		{Method: http.MethodPost, Path: "/tasks/v1/{id}/fail", Need: wire.ToWork, Do: a.fail},
		{Method: http.MethodPost, Path: "/workers/v1/register", Need: wire.ToWork, Do: a.register},
		{
			Method: http.MethodPost, Path: "/workers/v1/{id}/heartbeat", Need: wire.ToWork, Do: a.heartbeat,
			Types: anyType,
		},
		{Method: http.MethodGet, Path: "/workers/v1", Need: wire.ToInspect, Bulk: true, Do: a.workers},
		{Method: http.MethodGet, Path: "/queues/v1", Need: wire.ToInspect, Bulk: true, Do: a.queues},
		{Method: http.MethodGet, Path: "/actuator/prometheus", Need: wire.ToInspect, Bulk: true, Do: a.prometheus},
		{Method: http.MethodGet, Path: "/actuator/metrics", Need: wire.ToInspect, Do: a.metricNames},
		{Method: http.MethodGet, Path: "/actuator/metrics/{name}", Need: wire.ToInspect, Bulk: true, Do: a.metric},
	}}
}

// anyType are the types of a body that nobody reads.
var anyType = []string{
	"application/json", "text/plain", "application/octet-stream",
	"application/x-www-form-urlencoded",
}
