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

// SetLimit limits how many tasks with the given LimitKey run at once, and how often one of them starts. It replaces an
// earlier limit of the key. The limit holds for all workers, from the next claim on. It does not stop running tasks
// (docs/lifecycle.md, "Limits per key").
//
// The error wraps a *[tdf.PropertyError] if no task can have the key. SetLimit also returns an error if the limit is
// invalid, or if more than 10,000 keys would have a limit.
func (m *Manager) SetLimit(ctx context.Context, key string, limit tdf.Limit) error {
	return m.store.SetLimit(ctx, key, limit)
}

// RemoveLimit removes the limit of a key. The waiting tasks of the key can then run.
func (m *Manager) RemoveLimit(ctx context.Context, key string) error {
	return m.store.RemoveLimit(ctx, key)
}

// Limits returns the limits of all keys and how they are used, ordered by key.
func (m *Manager) Limits(ctx context.Context) ([]KeyLimit, error) {
	uses, err := m.store.Limits(ctx)
	var all []KeyLimit
	for _, u := range uses {
		all = append(all, KeyLimit{u.Key, u.Limit, u.Running, u.Waiting})
	}
	return all, err
}
