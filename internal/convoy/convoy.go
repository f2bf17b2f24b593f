// Package convoy sends what concurrent callers want to send to Redis in common calls, as a database commits groups of
// transactions.
package convoy

import (
	"context"
	"sync"
	"sync/atomic"
)

// A Convoy sends items in calls, one call at a time. If no call is under way, it sends a caller's items at once. The items that
// arrive during a call travel together in the next calls, so many callers cost Redis few calls, and a single caller never waits.
// Set the functions before the first use.
type Convoy[T, R any] struct {
	// Send makes a call. It returns a result for each item that was sent, in the order of the items. If it returns an error, the
	// results are those of the first items.
	Send func(ctx context.Context, items []T) ([]R, error)
	// Joins reports whether more items may travel in the same call.
	Joins func(items, more []T) bool

	mu       sync.Mutex
	underWay bool
	waiting  []*party[T, R]
}

// A party is a caller with its items.
type party[T, R any] struct {
	ctx     context.Context
	items   []T
	done    chan struct{} // closed when results and err are set
	results []R
	err     error
}

// Carry sends items, and returns what Send returns for them. If a common call fails, the items without a result are sent in a call
// for each caller, so that no caller gets the error of another one. If ctx ends during a common call, Carry returns at once, and
// Redis may have received the items.
func (c *Convoy[T, R]) Carry(ctx context.Context, items []T) ([]R, error) {
	c.mu.Lock()
	if c.underWay {
		p := &party[T, R]{ctx: ctx, items: items, done: make(chan struct{})}
		c.waiting = append(c.waiting, p)
		c.mu.Unlock()
		select {
		case <-p.done:
			return p.results, p.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	c.underWay = true
	c.mu.Unlock()
	defer c.next()
	return c.Send(ctx, items)
}

// next starts the next call, if callers wait.
func (c *Convoy[T, R]) next() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if together := c.take(); len(together) > 0 {
		go func() {
			defer c.next()
			c.sendTogether(together)
		}()
	} else {
		c.underWay = false
	}
}

// take removes the callers of the next call from those that wait. It leaves out callers that have given up.
func (c *Convoy[T, R]) take() (together []*party[T, R]) {
	var items []T
	for i, p := range c.waiting {
		switch {
		case p.ctx.Err() != nil:
		case len(together) == 0 || c.Joins(items, p.items):
			together, items = append(together, p), append(items, p.items...)
		default:
			c.waiting = append([]*party[T, R](nil), c.waiting[i:]...)
			return together
		}
	}
	c.waiting = nil
	return together
}

// sendTogether sends the items of callers in one call. The call's context ends when those of all callers have ended.
func (c *Convoy[T, R]) sendTogether(together []*party[T, R]) {
	if len(together) == 1 {
		c.sendAlone(together[0])
		return
	}
	ctx, end := context.WithCancel(context.WithoutCancel(together[0].ctx))
	defer end()
	var left atomic.Int64
	var items []T
	for _, p := range together {
		items = append(items, p.items...)
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
		if err != nil && n < len(p.items) {
			c.sendAlone(p)
		} else {
			close(p.done)
		}
	}
}

// sendAlone sends the items of a caller that have no results yet.
func (c *Convoy[T, R]) sendAlone(p *party[T, R]) {
	results, err := c.Send(p.ctx, p.items[len(p.results):])
	p.results, p.err = append(p.results, results...), err
	close(p.done)
}
