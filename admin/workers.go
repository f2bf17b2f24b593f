package admin

import (
	"context"
	"fmt"

	"github.com/tdf-framework/tdf/redisstate"
)

// A Worker is what a worker last said about itself, and who has told it to drain.
type Worker struct {
	redisstate.WorkerStatus
	Alive bool // it has not said goodbye, and its lease is not over
}

// Workers returns the workers that sent a heartbeat within a week, by their names.
func (a *Admin) Workers(ctx context.Context) ([]Worker, error) {
	s, err := a.redis(ctx)
	if err != nil {
		return nil, err
	}
	return workersOf(ctx, s)
}

func workersOf(ctx context.Context, s store) ([]Worker, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	seen, err := s.Workers(ctx)
	if err != nil {
		return nil, err
	}
	workers := make([]Worker, len(seen))
	for i, w := range seen {
		workers[i] = Worker{w, w.Alive(now)}
	}
	return workers, nil
}

// ErrNoWorker says that no worker of that name is known.
var ErrNoWorker = fmt.Errorf("no worker of that name was seen within a week")

// Drain tells a worker to claim nothing more, by its next heartbeat (every third of its lease): what
// it runs goes on to its end, and the worker stays, so that nothing starts it again. It holds for whoever
// starts under its name, too, until [Admin.Resume]. The error may be [ErrNoWorker].
func (a *Admin) Drain(ctx context.Context, worker string) error {
	s, err := a.redis(ctx)
	if err != nil {
		return err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	return a.drain(ctx, worker, fmt.Sprintf("%s at %s", a.Name, now.Std().UTC().Format("2006-01-02 15:04:05 MST")))
}

// Resume has a worker that drains claim again. The error may be [ErrNoWorker].
func (a *Admin) Resume(ctx context.Context, worker string) error { return a.drain(ctx, worker, "") }

func (a *Admin) drain(ctx context.Context, worker, by string) error {
	s, err := a.redis(ctx)
	if err != nil {
		return err
	}
	known, err := s.Drain(ctx, worker, by)
	if err == nil && !known {
		err = fmt.Errorf("worker %q: %w", worker, ErrNoWorker)
	}
	return err
}
