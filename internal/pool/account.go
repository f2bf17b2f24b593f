package pool

import (
	"cmp"
	"context"
	"sync"
)

// An Account has the bytes that one request makes the process hold, from the first byte of the request to the last byte
// of its answer. They are units of a Pool, in the name of a client. Several goroutines may use an Account at once.
type Account struct {
	mu    sync.Mutex
	pool  *Pool // nil before Begin and after End: what still runs for the request holds nothing in its name
	key   string
	taken int64
}

// Begin makes the account hold units of a Pool from now on, and gives back what it has held before.
func (a *Account) Begin(p *Pool, key string) {
	a.End()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pool, a.key = p, key
}

// Take takes bytes. The error is [ErrLarge] if the request alone would have more than a client may have, and otherwise
// that of [Pool.Take].
func (a *Account) Take(n int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.pool == nil || n <= 0:
		return nil
	case a.taken+n > a.pool.most/2:
		return ErrLarge
	}
	err := a.pool.Take(a.key, n)
	if err == nil {
		a.taken += n
	}
	return err
}

// Return gives back bytes that the account has taken.
func (a *Account) Return(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pool != nil {
		a.pool.Return(a.key, n)
		a.taken -= n
	}
}

// End gives back everything.
func (a *Account) End() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pool != nil {
		a.pool.Return(a.key, a.taken)
	}
	a.pool, a.taken = nil, 0
}

type accountKey struct{}

// With returns a context whose work is charged to an account.
func With(ctx context.Context, a *Account) context.Context {
	return context.WithValue(ctx, accountKey{}, a)
}

// Take charges bytes to the account of a context before they are in memory. It also looks at the end of the context, so
// that a loop which charges each of its steps needs no look of its own. Without an account, it does only that.
func Take(ctx context.Context, n int64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if a, ok := ctx.Value(accountKey{}).(*Account); ok {
		return a.Take(n)
	}
	return nil
}

// Fork returns an account in the name of the same client, for what outlives the request. The caller ends it.
func Fork(ctx context.Context) *Account {
	a := &Account{}
	if of, ok := ctx.Value(accountKey{}).(*Account); ok {
		of.mu.Lock()
		defer of.mu.Unlock()
		a.pool, a.key = of.pool, of.key
	}
	return a
}

// Part does a step of a request whose memory the request does not need until its end. When the step has ended, Part
// gives back what it has taken, except for the bytes that the request goes on holding.
func Part(ctx context.Context, step func(context.Context) (kept int64, err error)) error {
	of, ok := ctx.Value(accountKey{}).(*Account)
	if !ok {
		_, err := step(ctx)
		return err
	}
	part := Fork(ctx)
	defer part.End()
	kept, err := step(With(ctx, part))
	part.End()
	return cmp.Or(err, of.Take(kept))
}
