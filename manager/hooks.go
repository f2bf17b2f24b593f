package manager

import (
	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/friend"
	"github.com/tdf-framework/tdf/internal/jsonview"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/manager/internal/hooks"
	"github.com/tdf-framework/tdf/redisstate"
)

func init() {
	hooks.New = func(s hooks.Setup, options any) (any, error) {
		settings, err := options.(Options).settings()
		return &Manager{settings: settings, store: s.Store, wait: s.Wait}, err
	}
	friend.StoreOf = func(m any) *redisstate.Store { return m.(*Manager).store }
	friend.PartsOf = func(of any) friend.Parts {
		m := of.(*Manager)
		return friend.Parts{Config: m.cfg, Log: m.log, Name: m.name}
	}
	friend.QueryOf = func(query any) listing.Query { return query.(Query).listing() }
	friend.TaskOf = func(task any) *tdf.Task { return task.(*Task).task }
	friend.ViewOf = func(t *tdf.Task, whole bool) any { return newTask(t, whole) }
	friend.TaskJSON = func(task any, others jsonview.Object) jsonview.Object { return task.(*Task).json(others) }
}
