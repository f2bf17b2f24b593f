package manager

import (
	"context"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate"
)

// A Manager opens tasks in one namespace and looks after those that are done. It may be used
// by many goroutines, its own callbacks among them.
type Manager struct {
	cfg      config.Manager
	store    *redisstate.Store
	wait     func(ctx context.Context, round, held time.Duration) error // replaces the wait for Redis; nil in production
	log      *slog.Logger
	name     string
	progress io.Writer
	running  sync.Mutex // held by Run
}

// Load is [New] with the configuration of a file (docs/configuration.md). What is wrong with
// the file is a *[config.Error].
func Load(ctx context.Context, path string, options ...Option) (*Manager, error) {
	cfg, err := config.LoadManager(path)
	if err != nil {
		return nil, err
	}
	return New(ctx, cfg, options...)
}

// New connects to Redis. One that is not there yet is waited for until ctx ends; one that
// cannot be used at all is a *[redisstate.RefusedError].
func New(ctx context.Context, cfg config.Manager, options ...Option) (*Manager, error) {
	m := newOn(nil, cfg, options...)
	store, err := redisstate.Connect(ctx, cfg.Redis, cfg.Namespace, m.log)
	if err != nil {
		return nil, err
	}
	m.store = store
	return m, nil
}

func newOn(store *redisstate.Store, cfg config.Manager, options ...Option) *Manager {
	m := &Manager{cfg: cfg, store: store, name: "manager"}
	for _, set := range options {
		set(m)
	}
	if m.log == nil {
		m.log = cfg.Log.Logger(os.Stderr)
	}
	return m
}

// An Option changes how a manager works.
type Option func(*Manager)

// WithLog has the manager log to l. Default: stderr, as section [log] of the configuration says.
func WithLog(l *slog.Logger) Option { return func(m *Manager) { m.log = l } }

// WithName has the tasks' logs name the manager so. Default: "manager".
func WithName(name string) Option { return func(m *Manager) { m.name = name } }

// WithProgress has [Manager.Run] show on w how far it is: on a terminal in one line that is
// rewritten, elsewhere in plain lines, a few seconds apart and only when something changed.
// Default: it shows nothing.
func WithProgress(w io.Writer) Option { return func(m *Manager) { m.progress = w } }

// Close ends the connection to Redis.
func (m *Manager) Close() error { return m.store.Close() }

// Define returns the definition of a task as the configuration's [task_defaults] say, to be
// changed as needed and given to [Manager.Open] or [Task.Open].
func (m *Manager) Define(program, source, input string) tdf.Properties {
	d := m.cfg.TaskDefaults
	d.Program, d.Source, d.Input = program, source, input
	return d
}
