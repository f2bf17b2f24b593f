// Package friend gives packages admin and program, and the command tdf, the parts of a manager that its API does not export.
package friend

import (
	"context"
	"log/slog"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/jsonview"
	"github.com/tdf-framework/tdf/internal/listing"
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

// Package manager sets these functions. Their arguments any and results any are types of package manager.
var (
	// StoreOf returns the connection to Redis of a *manager.Manager, which it makes first if there is none.
	StoreOf func(ctx context.Context, manager any) (*redisstate.Store, error)
	// PartsOf returns the parts of a *manager.Manager.
	PartsOf func(manager any) Parts

	// QueryOf converts a manager.Query, and ChangesOf a manager.Changes.
	QueryOf   func(query any) listing.Query
	ChangesOf func(changes any) tdf.Changes

	// TaskOf returns the task that a *manager.Task shows; ViewOf returns the *manager.Task of a task that was read whole or not.
	TaskOf func(task any) *tdf.Task
	ViewOf func(task *tdf.Task, whole bool) any

	// TaskJSON returns the JSON of a *manager.Task with other members.
	TaskJSON func(task any, others jsonview.Object) jsonview.Object

	// DefinitionOf returns the manager.Definition of properties.
	DefinitionOf func(properties tdf.Properties) any
)
