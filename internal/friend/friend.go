// Package friend has what the packages of TDF need of a manager, and programs cannot reach.
package friend

import (
	"log/slog"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/jsonview"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// Parts are the parts of a manager. Who gets the Store, keeps an interface with only the methods that it needs.
type Parts struct {
	Store  *redisstate.Store // connects at its first call
	Config config.Manager
	Log    *slog.Logger
	Name   string // the manager's name in the logs of tasks
}

// Of returns the parts of a *manager.Manager. Package manager sets it.
var Of func(manager any) Parts

// TaskOf returns the *manager.Task for a stored task. If whole is false, the Task is a summary. Package manager sets
// it.
var TaskOf func(t *task.Task, whole bool) any

// JSONOf returns the members of the JSON of a *manager.Task and those of others, in the order of docs/tdf.md, "JSON".
// Package manager sets it.
var JSONOf func(one any, others jsonview.Object) jsonview.Object
