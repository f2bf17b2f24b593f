// Package friend gives package workertest access to a function that package worker does not export.
package friend

import "context"

// RunInProcess runs a round like a worker that runs rounds in its own process. runner is a worker.Runner, round is a
// *worker.Round, and ended is a worker.Ended. Package worker sets this variable.
var RunInProcess func(ctx context.Context, runner, round any) (ended any, err error)
