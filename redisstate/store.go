package redisstate

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/accounts"
	"github.com/tdf-framework/tdf/redisstate/blobs"
	"github.com/tdf-framework/tdf/redisstate/callbacks"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/counts"
	"github.com/tdf-framework/tdf/redisstate/groups"
	"github.com/tdf-framework/tdf/redisstate/keys"
	"github.com/tdf-framework/tdf/redisstate/limits"
	"github.com/tdf-framework/tdf/redisstate/notices"
	"github.com/tdf-framework/tdf/redisstate/opensets"
	"github.com/tdf-framework/tdf/redisstate/presence"
	"github.com/tdf-framework/tdf/redisstate/programs"
	"github.com/tdf-framework/tdf/redisstate/updates"
)

// A Store is one client of a namespace. Many goroutines may use it at the same time.
type Store struct {
	Keys keys.Names
	Conn *conn.Conn

	// Accounts, Blobs and the others are what the namespace has beside its tasks.
	Accounts  accounts.Accounts
	Blobs     blobs.Blobs
	Callbacks callbacks.Callbacks
	Counters  *counts.Counters
	Groups    groups.Groups
	Limits    limits.Limiter
	Notices   notices.Outbox
	Presence  *presence.Presence
	OpenSets  opensets.Sets
	Programs  *programs.Archives
	Updates   updates.Updates

	link linkSpeed
	pace pace

	room room

	sizeless atomic.Bool // Redis does not report the sizes of tasks
}

// New returns a Store for a namespace. It checks the configuration, but does not connect. The first method call
// connects and does the checks of Ready.
func New(cfg config.Redis, namespace string, log *slog.Logger) (*Store, error) {
	c, err := conn.New(cfg, namespace, log)
	if err != nil {
		return nil, err
	}
	counters := counts.New(c)
	return &Store{
		Keys: c.Keys, Conn: c,
		Accounts: accounts.Accounts{Conn: c}, Blobs: blobs.Blobs{Conn: c}, Callbacks: callbacks.Callbacks{Conn: c},
		Counters: counters, Groups: groups.Groups{Conn: c}, Limits: limits.Limiter{Conn: c}, Notices: notices.Outbox{Conn: c},
		OpenSets: opensets.Sets{Conn: c}, Presence: presence.New(c, counters), Programs: programs.New(c),
		Updates: updates.Updates{Conn: c},
		room:    room{clock: time.Now, reading: make(chan struct{}, 1), logged: map[roomWait]bool{}},
	}, nil
}

// Connect returns a Store as soon as Redis answers and passes the checks of Ready. It waits for Redis until ctx ends.
func Connect(ctx context.Context, cfg config.Redis, namespace string, log *slog.Logger) (*Store, error) {
	s, err := New(cfg, namespace, log)
	if err != nil {
		return nil, err
	}
	if err := s.Conn.Ready(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Now returns the time by Redis's clock.
func (s *Store) Now(ctx context.Context) (task.Time, error) { return s.Conn.Now(ctx) }

// Close adds the last counts to those in Redis, and ends the connection. Calls after Close return an error.
func (s *Store) Close() error {
	s.Counters.EndCounts()
	return s.Conn.Close()
}

// ErrGroupTaken means that a group that should be new already has tasks.
var ErrGroupTaken = task.NewError(task.CodeTaken,
	"the group already has tasks; open more with Open, or choose another group")

// ErrGroupExtended is the error if another call has extended the group that is being opened.
var ErrGroupExtended = task.NewError(task.CodeConflict, "another call has extended the group meanwhile")

// ErrRecordChanged means that another client has changed the record of a stage or a periodic since the caller read it.
var ErrRecordChanged = task.NewError(task.CodeConflict, "the record of the stage or periodic has changed")

// ErrUnlinked means that nobody knows yet whether unfinished tasks need a task. So the task and its outputs cannot be
// removed.
var ErrUnlinked = task.NewError(task.CodeUnavailable, "unfinished tasks may need it")

// ErrNoDefinitions means that stored definitions do not exist. Without a pipeline that needs them, they expire after a
// day.
var ErrNoDefinitions = task.NewError(task.CodeExpired,
	"the stored definitions of the stage do not exist; they may have expired")

// ErrNoRoom means that new tasks must wait, because Redis uses too much of its memory.
var ErrNoRoom = task.NewError(task.CodeUnavailable, "new tasks must wait, because redis uses too much of its maxmemory")
