// Package friend gives package workertest access to a function that package worker does not export.
package friend

import "context"

// RunInProcess runs a round as a worker does that runs rounds in its own process. runner is a worker.Runner, round a
// *worker.Round and ended a worker.Ended. Package worker sets it.
var RunInProcess func(ctx context.Context, runner, round any) (ended any, err error)
