package manager

import (
	"context"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// An attendance lasts while a manager waits for finished tasks. It keeps a record in Redis, so that Redis wakes the
// manager.
type attendance struct {
	store *redisstate.Store
	waker *redisstate.Waker
}

// absence is how long the record stays in Redis while the manager calls callbacks. Without a record, the manager finds
// finished tasks only after a round_duration.
const absence = tdf.Seconds(600)

// registerBound is how long a manager tries to write its record. A full Redis refuses the record. The manager must then
// continue, because archiving frees memory.
const registerBound = time.Second

// attend returns a function that waits for finished tasks, and a function that ends the attendance.
func (m *Manager) attend(ctx context.Context) (wait func(ctx context.Context, most time.Duration) error, leave func()) {
	if m.wait != nil {
		return nil, func() {}
	}
	a := &attendance{store: m.store, waker: m.store.WakeManager()}
	a.register(ctx, 0)
	return a.wait, a.leave
}

func (a *attendance) register(ctx context.Context, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, registerBound)
	defer cancel()
	if now, err := a.store.Now(ctx); err == nil {
		_ = a.store.ManagerHeartbeat(ctx, now, tdf.For(wait)+absence)
	}
}

// wait returns when a task may have finished, when ctx ends, or after the duration most.
func (a *attendance) wait(ctx context.Context, most time.Duration) error {
	a.register(ctx, most)
	a.waker.Wait(ctx, most)
	return nil
}

// leave removes the record. If this fails, the record expires.
func (a *attendance) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = a.store.ManagerLeft(ctx)
	a.waker.Close()
}
