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
	Apply(ctx context.Context, who string, units ...redisstate.Unit) ([]redisstate.Outcome, error)
	Load(ctx context.Context, ids []int64) ([]redisstate.Seen, error)
	Task(ctx context.Context, id int64) (*tdf.Task, error)
	Tasks(ctx context.Context, ids ...int64) ([]*tdf.Task, error)
	List(ctx context.Context, state tdf.State, group string, offset, limit int64) ([]int64, error)
	Counts(ctx context.Context, groups ...string) (redisstate.Counts, error)
	Find(ctx context.Context, of redisstate.Stretch, most int) (places []redisstate.Place, last bool, err error)
	Glance(ctx context.Context, ids []int64, rounds int, keep func(*tdf.Task) bool) ([]*tdf.Task, error)
	Texts(ctx context.Context, of []redisstate.TextsOf, most int64) ([][]string, error)
	IDs(ctx context.Context, most int64) iter.Seq2[[]int64, error]
	LastServer(ctx context.Context) (tdf.Time, error)
	Close() error
}

// A Setup replaces parts of a manager.
type Setup struct {
	// Store is where the tasks are. nil: the manager connects to its Redis.
	Store Store

	// Wait returns when a task may have finished, or after a duration, or when ctx ends. An error ends Run.
	// nil: Redis wakes the manager.
	Wait func(ctx context.Context, most time.Duration) error
}

// New returns a *manager.Manager with a setup, made from manager.Options. Package manager sets it.
var New func(s Setup, options any) (any, error)
