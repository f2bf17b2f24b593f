package managing

import (
	"context"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A Batcher sends what concurrent callers want to send to Redis in common calls, as a database commits groups of
// transactions: at most two calls at a time. If no call is under way, it sends a caller's items at once, so
// a single caller never waits. The items that arrive during a call go together in the next call, so many callers cost
// Redis few calls. The second call starts when it has as many items as the first: the callers then prepare items while
// Redis works, and the calls do not become small. Set the functions before the first use.
type Batcher[T, R any] struct {
	// Send makes a call. It returns a result for each item that was sent, in the order of the items. If it returns an
	// error, the results are those of the first items.
	Send func(ctx context.Context, items []T) ([]R, error)
	// Fits reports whether the items of several callers may go in the same call. If items fit, so do the first of
	// them.
	Fits func(items []T) bool
	// Alone reports whether ctx has values that hold for its own calls. Its items then get calls of their own. Nil means
	// that no context has.
	Alone func(ctx context.Context) bool

	mu      sync.Mutex
	calls   int // how many calls are under way
	sent    int // how many items they have
	waiting []*caller[T, R]
	waits   int // how many items wait
}

// A caller waits for the results of its items.
type caller[T, R any] struct {
	ctx     context.Context
	items   []T
	done    chan struct{} // closed when results and err are set
	results []R
	err     error
	left    bool // the caller has given up before a call
}

// Do sends items, and returns what Send returns for them. If a common call fails, the items without a result are sent
// in a call for each caller, so that no caller gets the error of another one. If ctx ends during a common call, Do
// returns at once, and the error is a *[conn.UnknownError].
func (c *Batcher[T, R]) Do(ctx context.Context, items []T) ([]R, error) {
	if c.Alone != nil && c.Alone(ctx) {
		return c.Send(ctx, items)
	}
	c.mu.Lock()
	if c.calls == 0 {
		c.begin(len(items))
		c.mu.Unlock()
		defer c.end(len(items))
		return c.Send(ctx, items)
	}
	p := &caller[T, R]{ctx: ctx, items: items, done: make(chan struct{})}
	c.waiting, c.waits = append(c.waiting, p), c.waits+len(items)
	c.start()
	c.mu.Unlock()
	select {
	case <-p.done:
		return p.results, p.err
	case <-ctx.Done():
		if !c.leave(p) {
			return nil, &conn.UnknownError{Err: context.Cause(ctx)}
		}
		return nil, context.Cause(ctx)
	}
}

// leave removes a caller that has given up. It returns false if its items are in a call.
func (c *Batcher[T, R]) leave(p *caller[T, R]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.waiting, p)
	if i >= 0 {
		c.waiting, c.waits = slices.Delete(c.waiting, i, i+1), c.waits-len(p.items)
	}
	return i >= 0 || p.left
}

// begin counts a call as under way. The caller of begin holds c.mu.
func (c *Batcher[T, R]) begin(items int) { c.calls, c.sent = c.calls+1, c.sent+items }

// end ends a call, and starts the next one.
func (c *Batcher[T, R]) end(items int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls, c.sent = c.calls-1, c.sent-items
	c.start()
}

// start starts a call, if callers wait and a call may start. The caller of start holds c.mu.
func (c *Batcher[T, R]) start() {
	if c.calls > 1 || c.waits < c.sent {
		return
	}
	together, items := c.take()
	if len(together) == 0 {
		return
	}
	c.begin(len(items))
	go func() {
		defer c.end(len(items))
		c.sendTogether(together, items)
	}()
}

// take removes the callers of the next call from those that wait, and returns them and their items. It leaves out
// callers that have given up.
func (c *Batcher[T, R]) take() (together []*caller[T, R], items []T) {
	live := slices.DeleteFunc(c.waiting, func(p *caller[T, R]) bool {
		gone := p.ctx.Err() != nil
		if p.left = gone; gone {
			c.waits -= len(p.items)
		}
		return gone
	})
	fit, ends := 0, []int{0}                   // how many callers fit, and the number of items of the first callers
	for all := true; all && fit < len(live); { // twice as many each time, because each check reads all items
		some := min(max(1, 2*fit), len(live))
		for _, p := range live[fit:some] {
			items = append(items, p.items...)
			ends = append(ends, len(items))
		}
		if all = some == 1 || c.Fits(items); !all {
			some = fit + sort.Search(some-fit-1, func(i int) bool { return !c.Fits(items[:ends[fit+i+1]]) })
		}
		fit = some
	}
	together, items = live[:fit:fit], items[:ends[fit]]
	c.waiting, c.waits = slices.Clone(live[fit:]), c.waits-len(items)
	return together, items
}

// sendTogether sends the items of callers in one call. The call's context ends when those of all callers have ended.
func (c *Batcher[T, R]) sendTogether(together []*caller[T, R], items []T) {
	if len(together) == 1 {
		c.sendAlone(together[0])
		return
	}
	ctx, end := context.WithCancel(context.WithoutCancel(together[0].ctx))
	defer end()
	var left atomic.Int64
	for _, p := range together {
		defer context.AfterFunc(p.ctx, func() {
			if left.Add(1) == int64(len(together)) {
				end()
			}
		})()
	}
	results, err := c.Send(ctx, items)
	for _, p := range together {
		n := min(len(p.items), len(results))
		p.results, results = results[:n:n], results[n:]
		switch {
		case conn.IsUnconfirmed(err) && n == len(p.items):
			p.err = err
			close(p.done)
		case err == nil || n == len(p.items):
			close(p.done)
		default:
			c.sendAlone(p)
		}
	}
}

// sendAlone sends the items of a caller that have no results yet.
func (c *Batcher[T, R]) sendAlone(p *caller[T, R]) {
	results, err := c.Send(p.ctx, p.items[len(p.results):])
	p.results, p.err = append(p.results, results...), err
	close(p.done)
}
