// Package hooks makes managers for package managertest: on a store of its own, and with a time of its own.
package hooks

import (
	"context"
	"iter"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// A Store keeps tasks. *redisstate.Store is one.
type Store interface {
	Now(ctx context.Context) (tdf.Time, error)
	Open(ctx context.Context, who string, definitions ...tdf.Properties) ([]int64, error)
	OpenGroup(ctx context.Context, who string, definitions ...tdf.Properties) ([]int64, error)
	Read(ctx context.Context, ids []int64, want redisstate.Want) ([]redisstate.Stored, error)
	ReadOne(ctx context.Context, id int64, want redisstate.Want) (redisstate.Stored, error)
	Apply(ctx context.Context, who string, units ...redisstate.Unit) ([]redisstate.Outcome, error)
	List(ctx context.Context, state tdf.State, group string, offset, most int64) ([]int64, error)
	Counts(ctx context.Context, groups ...string) (redisstate.Counts, error)
	Find(ctx context.Context, of redisstate.ListQuery, most int) (places []redisstate.ListEntry, last bool, err error)
	LastID(ctx context.Context) (int64, error)
	IDs(ctx context.Context, most int64) iter.Seq2[[]int64, error]
	LastServerHeartbeat(ctx context.Context) (tdf.Time, error)
	Close() error
}

// A Setup replaces parts of a manager.
type Setup struct {
	// Store is where the tasks are.
	Store Store
	// Wait waits until a task may have finished, at most for a duration of the manager's time. An error ends Run.
	// nil: Redis wakes the manager.
	Wait func(ctx context.Context, most time.Duration) error
}

// New returns a *manager.Manager with a setup. Its options are a config.Manager and the manager.Options. Package manager sets it.
var New func(s Setup, config any, options ...any) any
