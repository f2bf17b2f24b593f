package dashboard

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/pool"
)

// A view is the main part of a page, as users with the same rights see it.
type view struct {
	title  string
	main   []byte
	output *transcript   // of the round that the page shows, while it runs; or nil
	kept   *pool.Account // of the bytes of main, while the view is in the cache
}

// end gives back the memory of the view.
func (v *view) end() { v.kept.End() }

// Bounds of views.
const (
	viewLife = time.Second // a page is at most this old, so that a thousand users cost Redis no more than one
	maxFacts = 100         // data in memory that several pages show, and that are expensive to read
)

// key names what a page shows: its address, and what its user may see.
func (v *visit) key() string {
	return strings.Join([]string{string(v.user.Role), v.owner, v.request.URL.EscapedPath(), v.request.URL.RawQuery},
		"\x00")
}

// view returns the view of a page, which is at most viewLife old.
func (d *Dashboard) view(ctx context.Context, v *visit, p *page) (*view, error) {
	return recent(ctx, &d.views, v.key(), viewLife, func() (*view, error) {
		made, err := d.render(ctx, v, p)
		if err != nil {
			return nil, err
		}
		made.kept = pool.Fork(ctx) // the request ends before the view
		return made, made.kept.Take(int64(len(made.main)))
	})
}

// A cache holds what several requests need, so that it is made once for all of them. A value leaves it at its largest
// age.
type cache struct {
	most int // values in memory; 0 for any number

	mu  sync.Mutex
	all map[string]*cached
}

// A cached is a value that is being made, or was made.
type cached struct {
	begun time.Time
	done  chan struct{} // closed when the value is made
	value any
	err   error
}

// errUnmade is the error of a value whose making has not returned, because it panicked.
var errUnmade = errors.New("the value was not made")

// recent returns a value of at most this age. If there is none, it makes the value, or waits for another request that
// makes it at the moment. So only one goroutine makes a value at a time.
func recent[T any](ctx context.Context, c *cache, key string, age time.Duration, read func() (T, error)) (T, error) {
	for {
		x, mine := c.entry(key, age)
		if mine {
			defer c.close(key, x, age)
			value, err := read()
			x.value, x.err = value, err
			return value, err
		}
		select {
		case <-x.done:
		case <-ctx.Done():
			return *new(T), context.Cause(ctx)
		}
		if x.err == nil {
			return x.value.(T), nil
		} // else the user of the other request may have gone
	}
}

// entry returns the entry of a key. If mine is true, the caller must make its value, and close it.
func (c *cache) entry(key string, age time.Duration) (x *cached, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x = c.all[key]; x != nil {
		select {
		case <-x.done:
			if time.Since(x.begun) < age {
				return x, false
			}
		default:
			return x, false
		}
	}
	if c.all == nil || c.most > 0 && x == nil && len(c.all) >= c.most {
		c.all = map[string]*cached{}
	}
	x = &cached{begun: time.Now(), done: make(chan struct{}), err: errUnmade}
	c.all[key] = x
	return x, true
}

// close hands the value of an entry to the requests that wait for it. An error is not kept.
func (c *cache) close(key string, x *cached, age time.Duration) {
	close(x.done)
	if x.err != nil {
		age = 0
	}
	time.AfterFunc(age, func() { c.remove(key, x) })
}

// remove removes an entry, and gives back the memory of its value.
func (c *cache) remove(key string, x *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[key] == x {
		delete(c.all, key)
	}
	if of, ok := x.value.(interface{ end() }); ok && x.err == nil {
		of.end()
	}
}

// forget makes the next requests see what an action has changed.
func (c *cache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = nil
}
