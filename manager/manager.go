package manager

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/stdtime"
	"github.com/tdf-framework/tdf/manager/internal/hooks"
	"github.com/tdf-framework/tdf/redisstate"
)

// A Manager opens the tasks of one namespace and handles their results. Many goroutines may use it at once, and so may its own
// callbacks.
type Manager struct {
	settings
	setup   hooks.Setup
	running sync.Mutex // held by Run

	connecting chan struct{} // has room for the one call that connects
	mu         sync.Mutex    // guards the fields below
	store      hooks.Store   // nil: not connected yet
	closed     bool
}

// New returns a manager. It does not connect to Redis; the first call that needs Redis does. The error says which option is invalid.
func New(o Options) (*Manager, error) {
	s, err := o.settings()
	if err != nil {
		return nil, err
	}
	return &Manager{settings: s, connecting: make(chan struct{}, 1)}, nil
}

// Load returns a manager with the configuration of a file. It is [LoadOptions] and [New].
func Load(path string) (*Manager, error) {
	o, err := LoadOptions(path)
	if err != nil {
		return nil, err
	}
	return New(o)
}

// Connect connects to Redis, if no call has yet. Like every call, it waits for a Redis that does not answer, until ctx ends. The
// error is a *[redisstate.RefusedError] if Redis answers and cannot be used, for example because the password is wrong.
func (m *Manager) Connect(ctx context.Context) error {
	_, err := m.connect(ctx)
	return err
}

// errClosed is the error of calls after Close.
var errClosed = errors.New("connect to redis: the manager is closed")

// connect returns the connection, and makes it at the first call.
func (m *Manager) connect(ctx context.Context) (hooks.Store, error) {
	if s, err := m.connected(); s != nil || err != nil {
		return s, err
	}
	select {
	case m.connecting <- struct{}{}:
		defer func() { <-m.connecting }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s, err := m.connected(); s != nil || err != nil {
		return s, err
	}
	s, err := m.newStore(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		s.Close()
		return nil, errClosed
	}
	m.store = s
	return s, nil
}

func (m *Manager) connected() (hooks.Store, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errClosed
	}
	return m.store, nil
}

func (m *Manager) newStore(ctx context.Context) (hooks.Store, error) {
	if m.setup.Store != nil {
		return m.setup.Store, nil
	}
	s, err := redisstate.Connect(ctx, m.cfg.Redis, m.cfg.Namespace, m.log)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Close ends the connection to Redis. Later calls return an error.
func (m *Manager) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.store
	m.store, m.closed = nil, true
	if s == nil {
		return nil
	}
	return s.Close()
}

// Now returns the time of Redis's clock, by which all times of tasks are taken.
func (m *Manager) Now(ctx context.Context) (time.Time, error) {
	s, err := m.connect(ctx)
	if err != nil {
		return time.Time{}, err
	}
	now, err := s.Now(ctx)
	return stdtime.Time(now), err
}
