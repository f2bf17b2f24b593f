package admin

import (
	"context"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/friend"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// An Admin looks after the namespace of a manager. Many goroutines may use it at once.
type Admin struct {
	parts   friend.Parts
	manager *manager.Manager
}

// New returns an Admin of the manager's namespace. It uses the manager's connection, and ends with it.
func New(m *manager.Manager) *Admin { return &Admin{friend.PartsOf(m), m} }

func (a *Admin) redis(ctx context.Context) (*redisstate.Store, error) {
	return friend.StoreOf(ctx, a.manager)
}

// store has the methods of a *redisstate.Store that a watch uses.
type store interface {
	listing.Store
	Now(ctx context.Context) (tdf.Time, error)
	Counts(ctx context.Context, groups ...string) (tdf.Counts, error)
	Between(ctx context.Context, from, to tdf.Time, states ...tdf.State) (int64, error)
	LastServerHeartbeat(ctx context.Context) (tdf.Time, error)
	Workers(ctx context.Context) ([]redisstate.WorkerStatus, error)
}

// groupsOf returns the groups of a call for one group; "" stands for all tasks.
func groupsOf(group string) []string {
	if group == "" {
		return nil
	}
	return []string{group}
}
