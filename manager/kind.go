package manager

import (
	"context"

	"github.com/tdf-framework/tdf"
)

// ForKind returns a callback for tasks of a kind that succeeded. The callback gets their result (docs/manager.md,
// "Typed tasks"). A result that is not an Out makes the callback fail.
func ForKind[In, Out any](k tdf.Kind[In, Out], f func(ctx context.Context, t *Finished, out Out) error) Callback {
	return func(ctx context.Context, t *Finished) error {
		out, err := k.Result(t.Result())
		if err != nil {
			return err
		}
		return f(ctx, t, out)
	}
}

// ByProgram returns a callback that calls the callback of the task's program. For other programs, it calls otherwise,
// or does nothing if otherwise is nil.
func ByProgram(callbacks map[string]Callback, otherwise Callback) Callback {
	return func(ctx context.Context, t *Finished) error {
		f := callbacks[t.Program]
		if f == nil {
			f = otherwise
		}
		if f == nil {
			return nil
		}
		return f(ctx, t)
	}
}
