package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// A Handler runs rounds of one program in this process, several at once if the worker has several slots. Its error decides
// about the round:
//   - nil: the round succeeded.
//   - [Permanent]: the task failed for good, even if max_fails allows more rounds.
//   - [Later]: the task is released, and runs again after a delay.
//   - [Unfit]: the task is released, since only this host cannot run it.
//   - any other error: the round failed, and max_fails decides whether there is another one. The error's text, up to
//     32 KiB, ends the error of the round, and its exit status is 1.
//
// A panic fails the round, too. The error of the round ends with the panic's message and the stack, and its exit
// status is 2.
//
// ctx ends when the task's timeout is over, when the worker stops, and when the task is not this worker's any more. The
// handler must then return soon, with ctx's error: until it returns, its slot stays busy. Its answer is
// then ignored, except that nil still means success.
type Handler func(ctx context.Context, r *Round) error

// Run makes a Handler a [Runner].
func (h Handler) Run(ctx context.Context, r *Round) (Ended, error) { return Ended{}, h(ctx, r) }

// handlers are the handlers of a worker, by program.
type handlers map[string]Handler

func (h handlers) Prepare(_ context.Context, r *Round) (Runner, error) {
	if handler := h[r.Program]; handler != nil {
		return handler, nil
	}
	return nil, Unfit(fmt.Errorf("worker %s has no handler for program %q: it handles %q", r.Worker, r.Program, slices.Sorted(maps.Keys(h))))
}
