// Package managing has what package manager's Manager is made of, and how managers open tasks. Packages of TDF reach it
// with [Of]; programs cannot.
package managing

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/stages"
)

// A Manager has the parts of a *manager.Manager. [New] sets those that are not exported.
type Manager struct {
	Store    *redisstate.Store // connects at its first call. Keep an interface with only the methods that you need
	Config   config.Manager
	Log      *slog.Logger
	Name     string    // in the logs of tasks
	Progress io.Writer // where Run writes its progress; nil for nowhere
	Hooks

	Running sync.Mutex                                   // held by Run
	Acts    Batcher[redisstate.Unit, redisstate.Outcome] // changes that Do makes
	opens   Batcher[task.Properties, redisstate.Opened]  // tasks that Open opens in one call
}

// Stages are the stages of pipelines in the manager's namespace.
func (m *Manager) Stages() stages.Stages { return stages.Of(m.Store) }

// Hooks replace parts of Run in tests. In production, they are nil.
type Hooks struct {
	// Wait waits until a task has finished, but no longer than round, the time until the manager's next round, and no
	// longer than held, the time until a failed callback is called again. If Wait returns an error, Run ends.
	Wait func(ctx context.Context, round, held time.Duration) error
	// StageFailed is called when a function of a stage has failed, and is called again after a pause.
	StageFailed func(what string, attempts int, err error)
}

// A Handle refers to a Manager. manager.Manager is this type with methods for programs.
type Handle struct{ of *Manager }

// New returns a handle of m.
func New(m *Manager) Handle {
	m.opens.Send = func(ctx context.Context, all []task.Properties) ([]redisstate.Opened, error) {
		return m.Store.OpenAll(ctx, m.Name, "", all...)
	}
	m.Acts.Send = func(ctx context.Context, units []redisstate.Unit) ([]redisstate.Outcome, error) {
		return m.Store.Apply(ctx, m.Name, units...)
	}
	alone := func(ctx context.Context) bool { return m.Store.Conn.ForOwnCalls(ctx) }
	m.opens.Fits, m.opens.Alone = redisstate.OneOpen, alone
	m.Acts.Fits, m.Acts.Alone = redisstate.OneApply, alone
	return Handle{m}
}

// Of returns the inside of a *manager.Manager.
func Of[M ~struct{ of *Manager }](m *M) *Manager { return Handle(*m).of }
