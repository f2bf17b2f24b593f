package managertest

import (
	"context"
	"strconv"

	"github.com/tdf-framework/tdf/worker"
	"github.com/tdf-framework/tdf/worker/workertest"
)

// handled runs a handler for a round.
func handled(ctx context.Context, h worker.Handler, r Run) Result {
	got := workertest.Run(ctx, h, workertest.Task{
		ID: r.Task.ID, Round: r.Round, Program: r.Task.Program, Input: r.Task.Input, Group: r.Task.Group, Meta: r.Task.Meta,
		FailOn: r.Task.FailOn, Checkpoint: []byte(r.Task.Checkpoint), LastError: r.Task.Stored().LastError(),
	})
	result := Result{
		Output: got.Output, Error: got.Error, JSON: got.JSON, Checkpoint: string(got.Checkpoint), Updates: got.Updates,
		Opened: got.Opened, Permanent: got.Permanent, Later: got.Later,
	}
	result.Exit, _ = strconv.Atoi(got.Exit)
	if got.Released && got.Later == 0 && got.Err != nil {
		result.unfit = got.Err.Error()
	}
	return result
}
