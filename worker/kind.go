package worker

import (
	"context"

	"github.com/tdf-framework/tdf"
)

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
