package manager

import (
	"context"
	"fmt"

	"github.com/tdf-framework/tdf"
)

// A KeyLimit is the limit of a key, and how it is used.
type KeyLimit struct {
	Key string
	tdf.Limit
	Running int // tasks of the key that run
	Waiting int // tasks that wait because of the limit
}

// String returns a text such as "example.org: at_most=4, 4 running, 7 waiting".
func (l KeyLimit) String() string {
	return fmt.Sprintf("%s: %v, %d running, %d waiting", l.Key, l.Limit, l.Running, l.Waiting)
}

// Limits are the limits of the keys of a namespace (docs/lifecycle.md, "Limits per key").
type Limits struct{ m *Manager }

// Limits returns the limits of the namespace. It makes no call.
func (m *Manager) Limits() Limits { return Limits{m} }

// Set limits how many tasks with the given LimitKey run at once, and how often one of them starts. It replaces an
// earlier limit of the key. The limit holds for all workers, from the next claim on. It does not stop running tasks.
//
// The error wraps a *[tdf.PropertyError] if no task can have the key. Set also returns an error if the limit is
// invalid, or if more than 10,000 keys would have a limit.
func (l Limits) Set(ctx context.Context, key string, limit tdf.Limit) error {
	return l.m.in().Store.Limits.SetLimit(ctx, key, limit)
}

// Remove removes the limit of a key. The waiting tasks of the key can then run.
func (l Limits) Remove(ctx context.Context, key string) error {
	return l.m.in().Store.Limits.RemoveLimit(ctx, key)
}

// All returns the limits of all keys and how they are used, ordered by key.
func (l Limits) All(ctx context.Context) ([]KeyLimit, error) {
	uses, err := l.m.in().Store.Limits.Limits(ctx)
	var all []KeyLimit
	for _, u := range uses {
		all = append(all, KeyLimit{u.Key, u.Limit, u.Running, u.Waiting})
	}
	return all, err
}
