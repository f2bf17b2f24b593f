// Package friend gives packages admin and program the parts of a manager that its API does not export.
package friend

import (
	"context"
	"log/slog"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate"
)

// Parts are what a manager was made from.
type Parts struct {
	Config config.Manager
	Log    *slog.Logger
	Name   string // in the tasks' logs
}

// ServerPatience is how long a server may send no heartbeat before it counts as missing. A server sends one every few seconds,
// however long its rounds are.
const ServerPatience = tdf.Seconds(10)

// Package manager sets these functions. Their argument is a *manager.Manager.
var (
	// StoreOf returns the manager's connection to Redis, which it makes first if there is none.
	StoreOf func(ctx context.Context, manager any) (*redisstate.Store, error)
	PartsOf func(manager any) Parts
)
