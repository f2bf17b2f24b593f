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
	// Wait returns when a task has finished, or after the duration round. If held is shorter, it returns after held, because
	// a failed callback is then called again. If Wait returns an error, Run ends.
	Wait func(ctx context.Context, round, held time.Duration) error
}

// New returns a *manager.Manager with this setup. Its options must be manager.Options. Package manager sets New.
var New func(s Setup, options any) (any, error)
