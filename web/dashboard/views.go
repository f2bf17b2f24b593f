package dashboard

import (
	"context"
	"strings"
	"sync"
	"time"
)

// A view is the main part of a page, as users with the same rights see it.
type view struct {
	title  string
	main   []byte
	output *transcript // of the round that the page shows, while it runs; or nil
}

// Bounds of views.
const (
	viewLife = time.Second // a page is at most this old, so that a thousand users cost Redis no more than one
	maxViews = 1000        // in memory
)

// views holds the latest view of each page. The zero value is ready.
type views struct {
	mu  sync.Mutex
	all map[string]*pending
}

// A pending is a view that is being made, or was made.
type pending struct {
	begun time.Time
	done  chan struct{} // closed when the view is made
	made  *view
	err   error
}

// key names what a page shows: its address, and what its user may see.
func (v *visit) key() string {
	return strings.Join([]string{string(v.user.Role), v.owner, v.request.URL.EscapedPath(), v.request.URL.RawQuery}, "\x00")
}

// get returns a view that is at most viewLife old. If another request makes this view at the moment, get waits for it.
func (c *views) get(ctx context.Context, v *visit, p *page) (*view, error) {
	e, mine := c.entry(v.key(), time.Now())
	if mine {
		e.made, e.err = v.dashboard.render(ctx, v, p)
		close(e.done)
	}
	select {
	case <-e.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if e.err != nil && !mine && ctx.Err() == nil { // the user of the other request may have gone
		return v.dashboard.render(ctx, v, p)
	}
	return e.made, e.err
}

// entry returns the entry of a key. If mine is true, the caller must make the view.
func (c *views) entry(key string, now time.Time) (e *pending, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e = c.all[key]; e != nil && now.Sub(e.begun) < viewLife {
		return e, false
	}
	if len(c.all) >= maxViews {
		c.all = nil
	}
	if c.all == nil {
		c.all = map[string]*pending{}
	}
	e = &pending{begun: now, done: make(chan struct{})}
	c.all[key] = e
	return e, true
}

// forget makes the next requests see what an action has changed.
func (c *views) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = nil
}

// facts holds data that several pages show, and that are expensive to read. The zero value is ready.
type facts struct {
	mu  sync.Mutex
	all map[string]*fact
}

type fact struct {
	mu    sync.Mutex // held while the fact is read
	read  time.Time
	value any
}

// maxFacts is the largest number of facts in memory.
const maxFacts = 100

// recent returns a value of at most this age. If there is none, it reads the value. Only one goroutine reads a value at a time.
func recent[T any](d *Dashboard, name string, age time.Duration, read func() (T, error)) (T, error) {
	f := d.facts.of(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if old, ok := f.value.(T); ok && time.Since(f.read) < age {
		return old, nil
	}
	begun := time.Now()
	value, err := read()
	if err == nil {
		f.value, f.read = value, begun
	}
	return value, err
}

func (c *facts) of(name string) *fact {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= maxFacts && c.all[name] == nil {
		c.all = map[string]*fact{}
	}
	if c.all[name] == nil {
		c.all[name] = &fact{}
	}
	return c.all[name]
}
