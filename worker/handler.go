package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tdf-framework/tdf"
)

// A Handler runs rounds of one program in this process, several at once if the worker has several slots. The error
// that it returns decides how the round ends:
//   - nil: the round succeeded.
//   - [Permanent]: the task failed for good, even if max_fails allows more rounds.
//   - [Later]: the task is released, and runs again after a delay.
//   - [Unfit]: the task is released, because this host cannot run it.
//   - any other error: the round failed, and max_fails decides whether the task gets another round. The text of the
//     handler's error, up to 32 KiB, is added at the end of the round's error. The exit status of the round is 1.
//
// A panic also makes the round fail. The panic's message and the stack are added at the end of the round's error. The
// exit status of the round is 2. A handler that ends its goroutine by [runtime.Goexit] makes the round fail with the
// same exit status.
//
// ctx ends when the task's timeout is over, when the worker stops, and when the task no longer belongs to this worker.
// The handler must then return ctx's error soon, because its slot stays busy until the handler returns. A worker that
// stops waits for kill_grace, and at least for a second. Then it releases the task, removes the round's directory, and
// leaves the handler behind: [Worker.Run] returns an error. After the end of ctx, all errors have the same effect, but
// nil still means success.
type Handler func(ctx context.Context, r *Round) error

// Run makes a Handler a [Runner].
func (h Handler) Run(ctx context.Context, r *Round) (Ended, error) { return Ended{}, h(ctx, r) }

// handlers are the handlers of a worker. The keys are the names of programs.
type handlers map[string]Handler

func (h handlers) Prepare(_ context.Context, r *Round) (Runner, error) {
	if handler := h[r.Program]; handler != nil {
		return handler, nil
	}
	return nil, Unfit(fmt.Errorf("worker %s has no handler for program %q: it handles %q", r.Worker, r.Program,
		slices.Sorted(maps.Keys(h))))
}

// HandleKind is [Handle] with the handler of [ForKind].
func HandleKind[In, Out any](k tdf.Kind[In, Out], f func(ctx context.Context, r *Round, in In) (Out, error)) Option {
	return Handle(string(k), ForKind(k, f))
}

// ForKind returns a handler for tasks of a kind, whose input and result are Go values (docs/manager.md, "Typed tasks").
// An input that is not an In, or is invalid, makes the task fail for good. If f is nil, the handler is nil.
func ForKind[In, Out any](k tdf.Kind[In, Out], f func(ctx context.Context, r *Round, in In) (Out, error)) Handler {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, r *Round) error {
		in, err := k.Input(r.Input)
		if err != nil {
			return Permanent(err)
		}
		out, err := f(ctx, r, in)
		if err != nil {
			return err
		}
		return r.SetResult(out)
	}
}
