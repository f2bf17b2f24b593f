package tdf

import "github.com/tdf-framework/tdf/internal/task"

// A Limit says how many tasks with the same limit key may run at once, and how often one of them may start
// (docs/lifecycle.md, "Limits per key").
type Limit = task.Limit

// A Pausable is what a user can pause: a queue, a group, or the whole namespace (docs/lifecycle.md, "Pausing"). The
// zero value names nothing.
type Pausable = task.Pausable

// Everything pauses the whole namespace.
var Everything = task.Everything
