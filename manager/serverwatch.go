package manager

import (
	"context"
	"log/slog"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
)

// lookPause is the minimum time between two checks for a server.
const lookPause = task.Seconds(2)

// serverWatch logs a warning when no server is alive, because executed tasks wait until a server runs.
type serverWatch struct {
	store interface {
		LastServerHeartbeat(ctx context.Context) (task.Time, error)
	}
	log     *slog.Logger
	looked  task.Time
	from    task.Time // the time of the last check after which the server got more time for a heartbeat
	missing bool
}

func (w *serverWatch) look(ctx context.Context, now task.Time) error {
	if since := now.Sub(w.looked); since >= 0 && since < lookPause {
		return nil
	}
	late := w.looked > 0 && now.Sub(w.looked) > rules.ServerAbsence
	w.looked = now
	last, err := w.store.LastServerHeartbeat(ctx)
	if err != nil {
		return err
	}
	missing := now.Sub(max(last, w.from)) > rules.ServerPatience
	if missing && !w.missing && late && w.from <= last {
		w.from, missing = now, false // Redis may have been away, so the server may send its next heartbeat only now
	}
	switch {
	case missing && !w.missing && last == 0:
		w.log.Warn("no server was ever seen in this namespace; no task finishes until a server runs: start a server")
	case missing && !w.missing:
		w.log.Warn("no server has been seen for a while; no task finishes until a server runs: start a server",
			"seconds", float64(now.Sub(last)))
	case !missing && w.missing:
		w.log.Info("a server runs again")
	}
	w.missing = missing
	return nil
}
