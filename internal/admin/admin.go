package admin

import (
	"context"
	"fmt"

	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/counts"
	"github.com/tdf-framework/tdf/redisstate/groups"
	"github.com/tdf-framework/tdf/redisstate/limits"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// An Admin observes and repairs the namespace of a manager. Several goroutines may use it at once.
type Admin struct {
	parts *managing.Manager
}

// New returns an Admin for the manager's namespace. The Admin uses the manager's connection to Redis, until the manager
// is closed.
func New(m *manager.Manager) *Admin { return &Admin{managing.Of(m)} }

func (a *Admin) redis() *redisstate.Store { return a.parts.Store }

// store lists the methods of a *redisstate.Store and its parts with which this package reads tasks, groups and workers.
// Other methods are called on the Store itself.
type store interface {
	listing.Store
	Now(ctx context.Context) (task.Time, error)
	Counts(ctx context.Context, names ...string) (task.Counts, error)
	GroupMark(ctx context.Context, group string) (groups.Mark, error)
	Between(ctx context.Context, from, to task.Time, states ...task.State) (int64, error)
	LastServerHeartbeat(ctx context.Context) (task.Time, error)
	Workers(ctx context.Context) ([]presence.WorkerStatus, error)
	Waiting(ctx context.Context) ([]string, error)
	Room(ctx context.Context) (settings task.Settings, invalid error, m task.Memory, err error)
	Paused(ctx context.Context) ([]limits.Pausing, error)
	HeldSources(ctx context.Context) ([]task.FailingSource, error)
	LimitUses(ctx context.Context, keys ...string) ([]task.LimitUse, error)
	OpenGroupsOf(ctx context.Context, ids []int64) ([]string, error)
}

// storeOf returns the store of a namespace, with its parts.
func storeOf(s *redisstate.Store) store {
	return struct {
		*redisstate.Store
		*counts.Counters
		groups.Groups
		*limits.Limiter
		*presence.Presence
	}{s, s.Counters, s.Groups, &s.Limits, s.Presence}
}

// groupsOf returns the groups for a call about one group. An empty group means all tasks.
func groupsOf(group string) []string {
	if group == "" {
		return nil
	}
	return []string{group}
}

// serverAlive is how long ago a server must have sent a heartbeat at most. A server sends one at least every 2 s.
const serverAlive = task.Seconds(10)

// ErrNoServer is the error of Ready if no server is alive.
var ErrNoServer = task.NewError(task.CodeUnavailable, "no server has sent a heartbeat within the last 10 s")

// Replication reads which Redis is the primary, and how far its replicas are.
func (a *Admin) Replication(ctx context.Context) (Replication, error) {
	info, err := a.redis().Conn.Info(ctx, "replication")
	return a.redis().Conn.WithSentinels(ctx, a.redis().Conn.Replication(info)), err
}

// Ready returns nil if tasks can be opened and settled: Redis accepts writes, and a server is alive. If Redis does not
// answer, Ready waits until ctx ends.
func (a *Admin) Ready(ctx context.Context) error {
	s := a.redis()
	if err := s.Conn.TryWrite(ctx); err != nil {
		return fmt.Errorf("check whether Redis accepts writes: %w", err)
	}
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	seen, err := s.Presence.LastServerHeartbeat(ctx)
	if err != nil || now.Sub(seen) <= serverAlive {
		return err
	}
	return ErrNoServer
}
