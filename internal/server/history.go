package server

import (
	"context"

	"github.com/tdf-framework/tdf/internal/task"
)

type historyStore interface {
	KeepHistory(ctx context.Context, now task.Time) error
}

// historyPause is the time after which a server looks whether entries of the history are missing. It is shorter than a
// step of the history, so that each step has an entry.
const historyPause = task.Seconds(10)

// history remembers when the server last looked at the history of the namespace.
type history struct {
	looked task.Time
}

// keepHistory stores what the namespace has counted, if a new step of the history has begun (docs/metrics.md,
// "History"). The server's other work does not depend on it, so an error is only logged.
func (s *Server) keepHistory(ctx context.Context, now task.Time) {
	if since := now.Sub(s.history.looked); 0 <= since && since < historyPause {
		return
	}
	s.history.looked = now
	if err := s.store.KeepHistory(ctx, now); err != nil && ctx.Err() == nil {
		s.log.Warn("the history lacks an entry", "error", err)
	}
}
