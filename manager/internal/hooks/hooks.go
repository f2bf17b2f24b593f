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
	// Wait waits until a task has finished, but no longer than round, the time until the manager's next round, and no
	// longer than held, the time until a failed callback is called again. If Wait returns an error, Run ends.
	Wait func(ctx context.Context, round, held time.Duration) error
	// StageFailed is called when a function of a stage has failed, and is called again after a pause.
	StageFailed func(what string, attempts int, err error)
}

// New returns a *manager.Manager with this setup. Its options must be manager.Options. Package manager sets New.
var New func(s Setup, options any) (any, error)
