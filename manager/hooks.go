package manager

import (
	"context"
	"errors"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/friend"
	"github.com/tdf-framework/tdf/manager/internal/hooks"
	"github.com/tdf-framework/tdf/redisstate"
)

// errNoRedis is the error of packages admin and program for a manager of package managertest.
var errNoRedis = errors.New("the tasks are not kept in Redis")

func init() {
	hooks.New = func(s hooks.Setup, cfg any, options ...any) any {
		m := newOn(s.Store, cfg.(config.Manager))
		for _, set := range options {
			set.(Option)(m)
		}
		m.wait = s.Wait
		return m
	}
	friend.StoreOf = func(_ context.Context, m any) (*redisstate.Store, error) {
		if s, ok := m.(*Manager).store.(*redisstate.Store); ok {
			return s, nil
		}
		return nil, errNoRedis
	}
	friend.PartsOf = func(of any) friend.Parts {
		m := of.(*Manager)
		return friend.Parts{Config: m.cfg, Log: m.log, Name: m.name}
	}
}
