// Package hooks makes managers for package managertest, which sets their clock.
package hooks

import (
	"context"
	"time"

	"github.com/tdf-framework/tdf/redisstate"
)

// A Setup replaces parts of a manager.
type Setup struct {
	// Store is the manager's connection to Redis. The manager closes it.
	Store *redisstate.Store
	// Wait returns when a task has finished, at the latest after the duration round. A callback that failed is due again
	// after the duration held. An error ends Run.
	Wait func(ctx context.Context, round, held time.Duration) error
}

// New returns a *manager.Manager with a setup, made from manager.Options. Package manager sets it.
var New func(s Setup, options any) (any, error)
