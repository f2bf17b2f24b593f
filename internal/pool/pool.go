// Package pool shares something bounded, such as places or bytes, among clients, so that no client can take all of it.
package pool

import (
	"sync"

	"github.com/tdf-framework/tdf/internal/task"
)

// Errors of a Pool.
var (
	ErrFull  = task.NewError(task.CodeUnavailable, "nothing is left for the call; the same call may succeed later")
	ErrShare = task.NewError(task.CodeUnavailable,
		"the client has its share; its calls may succeed when others of its own have ended")
	ErrLarge = task.NewError(task.CodeFull, "the call needs more memory than one client may have; ask for less at once")
)

// A Pool has a number of units. A client, which a key names, may have as many as are left for others after it, and at
// least one. So the first client gets up to half, the next one up to half of the rest, and a few clients together
// cannot take all. Several goroutines may use it at once.
type Pool struct {
	mu   sync.Mutex
	most int64
	all  int64            // the units that clients have
	of   map[string]int64 // by key
}

// New returns a Pool of so many units.
func New(most int64) *Pool { return &Pool{most: most, of: map[string]int64{}} }

// Take takes units for a client. It takes all or none of them, and then returns ErrFull or ErrShare.
func (p *Pool) Take(key string, n int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.of[key]+n > max(1, (p.most-p.all+p.of[key])/2):
		return ErrShare
	case p.all+n > p.most:
		return ErrFull
	}
	p.all += n
	p.of[key] += n
	return nil
}

// Return gives back units that the client has taken.
func (p *Pool) Return(key string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all -= n
	if p.of[key] -= n; p.of[key] == 0 {
		delete(p.of, key)
	}
}

// Enter takes a unit, and returns a function that gives it back. The function may be called several times.
func (p *Pool) Enter(key string) (leave func(), err error) {
	if err := p.Take(key, 1); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { p.Return(key, 1) }), nil
}

// Taken returns the number of units that all clients have.
func (p *Pool) Taken() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}
