package pool

import (
	"context"
	"errors"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// No client gets more than half of what others have left, and all together get no more than there is. What they give back is free again.
func TestPool(t *testing.T) {
	p := New(9)
	expect.Equal(t, p.Take("a", 5), ErrShare)
	expect.NoError(t, p.Take("a", 4))
	expect.Equal(t, p.Take("a", 1), ErrShare)
	expect.Equal(t, p.Take("b", 3), ErrShare)
	expect.NoError(t, p.Take("b", 2))
	expect.NoError(t, p.Take("e", 1))
	expect.NoError(t, p.Take("f", 1))
	leave := expect.Result(p.Enter("c")).Value(t)
	expect.Result(p.Enter("d")).FailsWith(t, ErrFull)
	leave()
	leave()
	expect.Equal(t, p.Taken(), 8)
	p.Return("a", 4)
	p.Return("b", 2)
	p.Return("e", 1)
	p.Return("f", 1)
	expect.Equal(t, p.Taken(), 0)
	expect.Len(t, p.of, 0, "keys")
	expect.NoError(t, New(1).Take("a", 1), "one of one")
}

// An account has what a request holds. A part of it gives back all but what the request goes on holding, also after an error.
func TestAccount(t *testing.T) {
	p, a := New(1000), &Account{}
	ctx, cancel := context.WithCancel(With(t.Context(), a))
	expect.NoError(t, Take(ctx, 5000), "before the account begins")
	a.Begin(p, "a")
	expect.NoError(t, Take(ctx, 100))
	expect.Equal(t, Take(ctx, 401), ErrLarge)
	expect.NoError(t, Part(ctx, func(ctx context.Context) (kept int64, err error) {
		expect.NoError(t, Take(ctx, 300))
		expect.Equal(t, p.Taken(), 400)
		return 50, nil
	}))
	expect.Equal(t, p.Taken(), 150)
	expect.Equal(t, Part(ctx, func(ctx context.Context) (kept int64, err error) { return 0, errors.Join(Take(ctx, 350), ErrFull) }).Error(), ErrFull.Error())
	expect.Equal(t, p.Taken(), 150)
	longer := Fork(ctx)
	expect.Equal(t, longer.Take(351), ErrShare)
	expect.NoError(t, longer.Take(350))
	a.End()
	expect.Equal(t, p.Taken(), 350)
	expect.NoError(t, Take(ctx, 5000), "after the end")
	longer.End()
	expect.Equal(t, p.Taken(), 0)
	expect.Len(t, p.of, 0, "keys")
	cancel()
	expect.Equal(t, Take(ctx, 0), context.Canceled)
	expect.NoError(t, Part(t.Context(), func(ctx context.Context) (kept int64, err error) { return 1, Take(ctx, 1) }), "without an account")
}
