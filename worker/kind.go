package worker

import (
	"context"
	"slices"

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

// Use wraps the handlers of all programs, for example to log or to measure their rounds, or to report their errors. The
// first is the outermost.
func Use(wrap ...func(next Handler) Handler) Option {
	return func(o *options) { o.wrap = append(o.wrap, wrap...) }
}

// wrapped returns a handler with what wraps it.
func (o *options) wrapped(h Handler) Handler {
	for _, wrap := range slices.Backward(o.wrap) {
		h = wrap(h)
	}
	return h
}
