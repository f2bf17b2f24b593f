package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tdf-framework/tdf"
)

// leastRound is a pause even for a round_duration of 0, so that a manager does not ask Redis without end.
const leastRound = 10 * time.Millisecond

// errRunning is returned by a second Run at the same time.
var errRunning = errors.New("run callbacks: this manager is running already; make a manager for each Run")

// Run handles finished tasks: it calls their callbacks and archives them, in rounds, until all tasks of Callbacks.Groups are archived
// or Callbacks.Stop returns true. A round starts when a task finishes, and at the latest a RoundDuration after the start of the
// round before.
//
// In these cases Run returns nil. It returns the error of EndOfRound. When ctx ends, it archives the tasks whose callbacks have
// returned, and returns the cause of ctx. While Redis is away, it waits. Several managers may handle the same tasks: each task is
// archived by one of them.
func (m *Manager) Run(ctx context.Context, c Callbacks) error {
	if !m.running.TryLock() {
		return errRunning
	}
	defer m.running.Unlock()
	r, err := m.newRun(c)
	if err != nil {
		return fmt.Errorf("run callbacks: %w", err)
	}
	defer r.progress.end()
	var leave func()
	r.attend, leave = m.attend(ctx)
	defer leave()
	for {
		begun := time.Now()
		done, err := r.once(ctx)
		if done || err != nil {
			return err
		}
		if err := r.wait(ctx, m.pause()-time.Since(begun)); err != nil {
			return err
		}
	}
}

func (m *Manager) pause() time.Duration { return max(m.cfg.RoundDuration, leastRound) }

// A run is one call of Run.
type run struct {
	*Manager
	Callbacks
	scope    []string // the groups to list; one "" stands for all tasks
	attend   func(ctx context.Context, most time.Duration) error
	backoff  backoff
	rounds   int
	again    bool // the last round left tasks that can be handled at once
	server   serverWatch
	progress progress
}

func (m *Manager) newRun(c Callbacks) (*run, error) {
	groups, err := scopeOf(c.Groups)
	if err != nil {
		return nil, err
	}
	c.Groups = groups
	r := &run{Manager: m, Callbacks: c, scope: groups, backoff: backoff{}}
	if len(groups) == 0 {
		r.scope = []string{""}
	}
	r.server = serverWatch{store: m.store, log: m.log}
	r.progress = newProgress(m.progress)
	return r, nil
}

// once makes one round, and reports whether it was the last.
func (r *run) once(ctx context.Context) (done bool, err error) {
	s, err := r.round(ctx)
	if err != nil {
		return false, err
	}
	r.progress.show(s)
	if r.EndOfRound != nil {
		if err := r.EndOfRound(ctx, s); err != nil {
			return false, err
		}
	}
	if r.Stop != nil {
		return r.Stop(ctx, s), nil
	}
	return s.Done(), nil
}

// wait returns when the next round has to begin.
func (r *run) wait(ctx context.Context, most time.Duration) error {
	held := tdf.Forever.Std()
	if next := r.backoff.next(); next < tdf.Never {
		now, err := r.store.Now(ctx)
		if err != nil {
			return err
		}
		held = next.Sub(now).Std()
	}
	var err error
	switch {
	case r.again || min(most, held) <= 0:
	case r.Manager.wait != nil:
		err = r.Manager.wait(ctx, r.pause(), held) // not most, because the clock of a test stands still during a round
	default:
		err = r.attend(ctx, min(most, held))
	}
	return cmp.Or(err, context.Cause(ctx))
}
