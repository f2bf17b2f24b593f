package manager

import (
	"context"
	"iter"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// Store is what a manager needs of the place where tasks are kept. [New] uses Redis; the
// package managertest brings one without.
type Store interface {
	Now(ctx context.Context) (tdf.Time, error)
	Open(ctx context.Context, who string, definitions ...tdf.Properties) ([]int64, error)
	OpenGroup(ctx context.Context, who string, definitions ...tdf.Properties) ([]int64, error)
	Apply(ctx context.Context, who string, units ...redisstate.Unit) ([]redisstate.Outcome, error)
	Read(ctx context.Context, ids []int64, want redisstate.Want) ([]redisstate.Stored, error)
	ReadOne(ctx context.Context, id int64, want redisstate.Want) (redisstate.Stored, error)
	List(ctx context.Context, state tdf.State, group string, offset, most int64) ([]int64, error)
	Counts(ctx context.Context, groups ...string) (redisstate.Counts, error)
	Find(ctx context.Context, of redisstate.ListQuery, most int) (places []redisstate.ListEntry, last bool, err error)
	Between(ctx context.Context, from, to tdf.Time, states ...tdf.State) (int64, error)
	LastID(ctx context.Context) (int64, error)
	IDs(ctx context.Context, most int64) iter.Seq2[[]int64, error]
	Updates(ctx context.Context, id int64, after redisstate.Update, most int) ([]redisstate.Update, error)
	Follow(ctx context.Context, id int64) error
	LastServerHeartbeat(ctx context.Context) (tdf.Time, error)
	Workers(ctx context.Context) ([]redisstate.WorkerStatus, error)
	Drain(ctx context.Context, worker, by string) (known bool, err error)
	PutProgram(ctx context.Context, archive []byte) (source string, err error)
	Attend(ctx context.Context) (Attendance, error)
	Close() error
}

// An Attendance lasts while a manager looks after tasks that are done.
type Attendance interface {
	// Wait returns when there may be such a task, at the latest after the time given or when
	// ctx ends. An error ends the manager's Run.
	Wait(ctx context.Context, most time.Duration) error
	Leave()
}

// redisStore is Redis, with what it takes to be woken by it.
type redisStore struct{ *redisstate.Store }

func (s redisStore) Attend(ctx context.Context) (Attendance, error) {
	a := &redisAttendance{store: s.Store, waker: s.WakeManager()}
	a.register(ctx, 0)
	return a, nil
}

type redisAttendance struct {
	store *redisstate.Store
	waker *redisstate.Waker
}

// absence is how long a manager that is busy with callbacks is still remembered. One that is
// forgotten finds what is done after a round_duration instead of at once.
const absence = tdf.Seconds(600)

// registerBound is how long a manager tries to be remembered. A Redis that is full does not
// take note of it, and must not keep it from archiving, which makes room.
const registerBound = time.Second

func (a *redisAttendance) register(ctx context.Context, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, registerBound)
	defer cancel()
	if now, err := a.store.Now(ctx); err == nil {
		_ = a.store.ManagerHeartbeat(ctx, now, tdf.For(wait)+absence)
	}
}

func (a *redisAttendance) Wait(ctx context.Context, most time.Duration) error {
	a.register(ctx, most)
	a.waker.Wait(ctx, most)
	return nil
}

// Leave has little time: nothing depends on it, since who does not come back is forgotten.
func (a *redisAttendance) Leave() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = a.store.ManagerLeft(ctx)
	a.waker.Close()
}
