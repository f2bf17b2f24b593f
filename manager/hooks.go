package manager

import (
	"context"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/friend"
	"github.com/tdf-framework/tdf/manager/internal/hooks"
	"github.com/tdf-framework/tdf/redisstate"
)

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
		return m.(*Manager).store, nil
	}
	friend.PartsOf = func(of any) friend.Parts {
		m := of.(*Manager)
		return friend.Parts{Config: m.cfg, Log: m.log, Name: m.name}
	}
}
