package manager

import (
	"context"
	"time"

	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// An attendance is a record in Redis, which says that a manager waits for finished tasks. Because of the record, Redis
// wakes the manager when a task finishes.
type attendance struct {
	store *redisstate.Store
	waker *conn.Waker

	first, registered time.Time // when Redis first and last accepted the record
}

// registerPause is how often a waiting manager renews its record.
const registerPause = 10 * time.Second

// registerBound is how long a manager tries to write its record. A full Redis refuses the record. The manager must
// continue without it, because archiving tasks frees memory.
const registerBound = time.Second

// attend returns two functions. The function wait waits for finished tasks, and the function leave ends the attendance.
func (m *Manager) attend(ctx context.Context) (wait func(ctx context.Context, most time.Duration) error, leave func()) {
	if m.in().Wait != nil {
		return nil, func() {}
	}
	a := &attendance{store: m.in().Store, waker: m.in().Store.WakeManager()}
	a.register(ctx)
	return a.wait, a.leave
}

func (a *attendance) register(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, registerBound)
	defer cancel()
	now, err := a.store.Now(ctx)
	if err != nil {
		return
	}
	if err := a.store.Presence.ManagerHeartbeat(ctx, now, sayFor); err != nil {
		return
	}
	a.registered = time.Now()
	if a.first.IsZero() {
		a.first = a.registered
	}
}

// wait waits until a task may have finished or ctx ends, but no longer than most.
func (a *attendance) wait(ctx context.Context, most time.Duration) error {
	if time.Since(a.registered) >= registerPause {
		a.register(ctx)
	}
	if unknown := presence.ManagerUnknown - time.Since(a.first); unknown > 0 {
		most = min(most, unknown)
	}
	a.waker.Wait(ctx, most)
	return nil
}

// leave removes the record. If Redis does not answer in time, the record expires later.
func (a *attendance) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = a.store.Presence.ManagerLeft(ctx)
	a.waker.Close()
}
