package manager

import (
	"context"
	"errors"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/friend"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/manager/internal/hooks"
	"github.com/tdf-framework/tdf/redisstate"
)

// errNoRedis is the error of packages admin and program for a manager whose tasks are in no Redis.
var errNoRedis = errors.New("the tasks are not kept in Redis")

func init() {
	hooks.New = func(s hooks.Setup, options any) (any, error) {
		m, err := New(options.(Options))
		if m != nil {
			m.setup = s
		}
		return m, err
	}
	friend.StoreOf = func(ctx context.Context, m any) (*redisstate.Store, error) {
		s, err := m.(*Manager).connect(ctx)
		if err != nil {
			return nil, err
		}
		if s, ok := s.(*redisstate.Store); ok {
			return s, nil
		}
		return nil, errNoRedis
	}
	friend.PartsOf = func(of any) friend.Parts {
		m := of.(*Manager)
		return friend.Parts{Config: m.cfg, Log: m.log, Name: m.name}
	}
	friend.QueryOf = func(query any) listing.Query { return query.(Query).listing() }
	friend.TaskOf = func(task any) *tdf.Task { return task.(*Task).task }
	friend.ViewOf = func(t *tdf.Task, whole bool) any { return newTask(t, whole) }
	friend.DefinitionOf = func(p tdf.Properties) any { return definitionOf(p) }
	friend.ChangesOf = func(changes any) tdf.Changes { return changes.(Changes).changes() }
}
