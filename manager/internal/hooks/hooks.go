// Package hooks creates managers for package managertest, which replaces their clock.
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
	// Wait returns when a task has finished, or when it has waited for the time until the next round. A failed callback
	// may have to be called again earlier: then held is shorter than round, and Wait returns after the time held. If
	// Wait returns an error, Run ends.
	Wait func(ctx context.Context, round, held time.Duration) error
}

// New returns a *manager.Manager with this setup. Its options must be manager.Options. Package manager sets New.
var New func(s Setup, options any) (any, error)
