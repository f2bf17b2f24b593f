package redisstate

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A Store is one client of a namespace. Many goroutines may use it at the same time.
type Store struct {
	*conn.Conn

	link linkSpeed
	pace pace

	pauses  knownPauses
	waiting waitingManagers
	room    room
	used    usedPrograms

	scanMissing atomic.Bool // the user lacks the right to SCAN
	scanRefused sync.Once   // logs once that the user lacks the right to SCAN
}

// New returns a Store for a namespace. It checks the configuration, but does not connect. The first method call
// connects and does the checks of Ready.
func New(cfg config.Redis, namespace string, log *slog.Logger) (*Store, error) {
	c, err := conn.New(cfg, namespace, log)
	if err != nil {
		return nil, err
	}
	return &Store{Conn: c, room: room{reading: make(chan struct{}, 1), logged: map[roomWait]bool{}}}, nil
}

// Connect returns a Store as soon as Redis answers and passes the checks of Ready. It waits for Redis until ctx ends.
func Connect(ctx context.Context, cfg config.Redis, namespace string, log *slog.Logger) (*Store, error) {
	s, err := New(cfg, namespace, log)
	if err != nil {
		return nil, err
	}
	if err := s.Ready(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}
