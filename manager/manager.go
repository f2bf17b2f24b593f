package manager

import (
	"context"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/batcher"
	"github.com/tdf-framework/tdf/internal/friend"
	"github.com/tdf-framework/tdf/internal/jsonview"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager/internal/hooks"
	"github.com/tdf-framework/tdf/redisstate"
)

// A Manager opens the tasks of one namespace and handles their results. Several goroutines and callbacks may use it at
// once.
type Manager struct {
	settings
	store *redisstate.Store
	opens batcher.Batcher[task.Properties, redisstate.Opened]        // tasks that Open opens in one call
	acts  batcher.Batcher[redisstate.Unit, redisstate.Outcome]       // changes that Do makes
	wait  func(ctx context.Context, round, held time.Duration) error // replaces the wait for Redis; nil in production
	// is called when a function of a stage has failed; nil in production
	stageFailed func(what string, attempts int, err error)
	running     sync.Mutex // held by Run
}

// New returns a manager. It does not connect to Redis; the first call that needs Redis connects. The error names the
// invalid option.
func New(o Options) (*Manager, error) {
	s, err := o.settings()
	if err != nil {
		return nil, err
	}
	store, err := redisstate.New(s.cfg.Redis, s.cfg.Namespace, s.log)
	if err != nil {
		return nil, err
	}
	store.ReportUnknown = true
	store.KeepCounts()
	return newManager(s, store), nil
}

func newManager(s settings, store *redisstate.Store) *Manager {
	m := &Manager{settings: s, store: store}
	m.opens.Send = func(ctx context.Context, all []task.Properties) ([]redisstate.Opened, error) {
		return store.OpenAll(ctx, s.name, "", all...)
	}
	m.opens.Fits, m.opens.Alone = redisstate.OneOpen, store.ForOwnCalls
	m.acts.Send = func(ctx context.Context, units []redisstate.Unit) ([]redisstate.Outcome, error) {
		return store.Apply(ctx, s.name, units...)
	}
	m.acts.Fits, m.acts.Alone = redisstate.OneApply, store.ForOwnCalls
	return m
}

// Load returns a manager with the configuration in a file. It calls [LoadOptions] and [New].
func Load(path string) (*Manager, error) {
	o, err := LoadOptions(path)
	if err != nil {
		return nil, err
	}
	return New(o)
}

// As returns a manager that shares the connection of m, and writes another name into the logs of tasks. Close one of
// the two only if nobody uses the other.
func (m *Manager) As(name string) *Manager {
	s := m.settings
	s.name = name
	other := newManager(s, m.store)
	other.wait, other.stageFailed = m.wait, m.stageFailed
	return other
}

// Connect connects to Redis, if no earlier call has connected. If Redis does not answer, Connect waits until ctx ends,
// like all methods that need Redis. If Redis answers but cannot be used, for example because the password is wrong,
// Connect returns an error at once.
func (m *Manager) Connect(ctx context.Context) error { return m.store.Ready(ctx) }

// Close ends the connection to Redis. Calls after Close return an error.
func (m *Manager) Close() error { return m.store.Close() }

// Now returns the time of Redis's clock. All times of tasks are times of this clock.
func (m *Manager) Now(ctx context.Context) (time.Time, error) {
	now, err := m.store.Now(ctx)
	return now.Std(), err
}

func init() {
	friend.TaskOf = func(t *task.Task, whole bool) any { return taskOf(t, whole) }
	friend.JSONOf = func(one any, others jsonview.Object) jsonview.Object { return one.(*Task).object(others) }
	friend.Of = func(manager any) friend.Parts {
		m := manager.(*Manager)
		return friend.Parts{Store: m.store, Config: m.cfg, Log: m.log, Name: m.name}
	}
	hooks.New = func(s hooks.Setup, options any) (any, error) {
		settings, err := options.(Options).settings()
		m := newManager(settings, s.Store)
		m.wait, m.stageFailed = s.Wait, s.StageFailed
		return m, err
	}
}
