// Package friend gives other packages of TDF access to parts of a manager that the manager's API does not export.
package friend

import (
	"log/slog"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/jsonview"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/redisstate"
)

// Parts are the configuration, the log and the name of a manager.
type Parts struct {
	Config config.Manager
	Log    *slog.Logger
	Name   string // the manager's name in the logs of tasks
}

// ServerPatience is a time in seconds. If the latest heartbeat of all servers is older, TDF assumes that no server is
// running. A server sends a heartbeat every few seconds, even during a long round.
const ServerPatience = tdf.Seconds(10)

// Package manager sets these functions. A parameter or result of type any holds a type of package manager, which this
// package cannot import.
var (
	// StoreOf returns the connection of a *manager.Manager to Redis. It connects at its first call.
	StoreOf func(manager any) *redisstate.Store
	// PartsOf returns the parts of a *manager.Manager.
	PartsOf func(manager any) Parts

	// QueryOf converts a manager.Query.
	QueryOf func(query any) listing.Query

	// TaskOf returns the tdf.Task of a *manager.Task. ViewOf returns a *manager.Task for a tdf.Task. The parameter
	// whole is false if the tdf.Task is a summary.
	TaskOf func(task any) *tdf.Task
	ViewOf func(task *tdf.Task, whole bool) any

	// TaskJSON returns the JSON of a *manager.Task, merged with the other members.
	TaskJSON func(task any, others jsonview.Object) jsonview.Object
)
