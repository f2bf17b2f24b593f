package manager

import (
	"context"
	"time"

	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/redisstate"
)

// A Manager opens the tasks of one namespace and handles their results. Several goroutines and callbacks may use it at
// once.
type Manager managing.Handle

// New returns a manager. It does not connect to Redis; the first call that needs Redis connects. The error names the
// invalid option.
func New(o Options) (*Manager, error) {
	of, err := o.inside()
	if err != nil {
		return nil, err
	}
	of.Store, err = redisstate.New(of.Config.Redis, of.Config.Namespace, of.Log)
	if err != nil {
		return nil, err
	}
	of.Store.Conn.ReportUnknown = true
	of.Store.Counters.KeepCounts()
	return newManager(of), nil
}

func newManager(of *managing.Manager) *Manager {
	m := Manager(managing.New(of))
	return &m
}

// in returns the parts of the manager.
func (m *Manager) in() *managing.Manager { return managing.Of(m) }

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
	of := m.in()
	return newManager(&managing.Manager{
		Store: of.Store, Config: of.Config, Log: of.Log, Name: name, Progress: of.Progress, Hooks: of.Hooks,
	})
}

// Connect connects to Redis, if no earlier call has connected. If Redis does not answer, Connect waits until ctx ends,
// like all methods that need Redis. If Redis answers but cannot be used, for example because the password is wrong,
// Connect returns an error at once.
func (m *Manager) Connect(ctx context.Context) error { return m.in().Store.Conn.Ready(ctx) }

// Close ends the connection to Redis. Calls after Close return an error.
func (m *Manager) Close() error { return m.in().Store.Close() }

// Now returns the time of Redis's clock. All times of tasks are times of this clock.
func (m *Manager) Now(ctx context.Context) (time.Time, error) {
	now, err := m.in().Store.Now(ctx)
	return now.Std(), err
}
