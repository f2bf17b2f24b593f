package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/tdf-framework/tdf/internal/jsonview"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A Worker is a worker as its last heartbeat described it.
type Worker struct {
	Name    string        `json:"name"`
	Host    string        `json:"host"`
	PID     int           `json:"pid"`
	Version string        `json:"version"`
	State   string        `json:"state"` // starting, working, draining or gone, or silent if its lease ran out
	Slots   int           `json:"slots"`
	Runs    []int64       `json:"runs"`  // the ids of the tasks that the worker ran
	Seen    time.Time     `json:"seen"`  // when the last heartbeat arrived
	Lease   time.Duration `json:"lease"` // the worker sends a heartbeat after each third of the lease

	// Queues, Tags and Handlers say which tasks the worker claims. Without queues, it serves the queue default.
	// Handlers are the programs for which the worker has handlers. A queue may have a weight: crawl:3.
	Queues   []string `json:"queues,omitempty"`
	Tags     []string `json:"tags,omitempty"`
	Handlers []string `json:"handlers,omitempty"`
	Campaign string   `json:"campaign,omitempty"` // the group of the tasks that the worker claims; "" for all groups

	// Resources are what the worker offers, such as "cpus=8 memory=16G", and ResourcesUsed is how much of them its rounds
	// had at the last heartbeat. Both are "" if it offers none.
	Resources     string `json:"resources,omitempty"`
	ResourcesUsed string `json:"resources_used,omitempty"`

	// Drained says who ordered the worker to drain, and when. If there is no order, Drained is "".
	Drained string `json:"drained,omitempty"`

	// Shortage says what the worker lacks, so that slots pause.
	Shortage string `json:"shortage,omitempty"`

	Alive bool `json:"-"` // whether the worker is neither gone nor silent
	// InProcess reports whether the worker runs rounds in its own process, and fetches no programs.
	InProcess bool `json:"-"`

	uses string
}

// Uses returns how much of its resources the worker uses, such as "cpus 3 of 8, memory 2G of 16G".
func (w Worker) Uses() string { return w.uses }

// MarshalJSON writes times as in docs/tdf.md, "JSON", and the lease in seconds.
func (w Worker) MarshalJSON() ([]byte, error) { return jsonview.Marshal(w) }

// Workers returns the workers that Redis remembers, ordered by name: those that sent a heartbeat within a week.
func (a *Admin) Workers(ctx context.Context) ([]Worker, error) {
	s := a.redis()
	f := fleet{}
	var err error
	if f.at, err = s.Now(ctx); err != nil {
		return nil, err
	}
	if f.workers, err = s.Presence.Workers(ctx); err != nil {
		return nil, err
	}
	workers := make([]Worker, len(f.workers))
	for i := range f.workers {
		workers[i] = f.view(&f.workers[i])
	}
	return workers, nil
}

func (f *fleet) view(w *presence.WorkerStatus) Worker {
	v := Worker{
		Name: w.Name, Host: w.Host, PID: w.PID, Version: w.Version, State: f.stateOf(w), Slots: w.Slots, Runs: w.Runs,
		Seen: w.Seen.Std(), Lease: w.Lease.Std(), Drained: w.Drained, Alive: w.Alive(f.at), InProcess: w.InProcess,
		Tags: w.Offer.Tags, Handlers: w.Offer.Handlers, Campaign: w.Offer.Group,
		Resources: w.Offer.Resources.String(), ResourcesUsed: w.Used.String(), Shortage: w.Shortage,
	}
	v.uses = usesText(w.Offer.Resources, w.Used)
	for _, q := range w.Offer.Queues {
		v.Queues = append(v.Queues, q.String())
	}
	return v
}

// ErrNoWorker is the error if Redis remembers no worker of the given name.
var ErrNoWorker = task.NewError(task.CodeNotFound, "no worker of this name was seen lately")

// Drain orders a worker to claim no more tasks. The worker obeys with its next heartbeat, finishes its running tasks,
// and does not exit. The order also applies to later workers of the same name, until [Admin.Resume]. The error may wrap
// [ErrNoWorker].
func (a *Admin) Drain(ctx context.Context, worker string) error {
	s := a.redis()
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	return drain(ctx, s, worker, fmt.Sprintf("%s at %s", a.parts.Name,
		now.Std().UTC().Format("2006-01-02 15:04:05 MST")))
}

// Resume withdraws the order of [Admin.Drain]. The worker then claims tasks again. The error may wrap [ErrNoWorker].
func (a *Admin) Resume(ctx context.Context, worker string) error {
	s := a.redis()
	return drain(ctx, s, worker, "")
}

func drain(ctx context.Context, s *redisstate.Store, worker, by string) error {
	known, err := s.Presence.Drain(ctx, worker, by)
	if err != nil || known {
		return err
	}
	return fmt.Errorf("worker %q: %w", worker, ErrNoWorker)
}
