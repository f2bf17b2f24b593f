package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

type watched interface {
	Info(ctx context.Context, sections ...string) (redisstate.Info, error)
	LastServer(ctx context.Context) (tdf.Time, error)
	LongestLease(ctx context.Context, now tdf.Time) (tdf.Seconds, error)
	Calm(ctx context.Context) (tdf.Time, error)
	SetCalm(ctx context.Context, until tdf.Time) error
	Outages() int64
	Dials() int64
}

// watch notices when silence may be nobody's fault: after Redis was away or started anew,
// its clock leapt, or no server had been there for a while. Then workers get time to be
// heard before anything of theirs is judged (docs/guarantees.md, "After an outage").
type watch struct {
	store watched
	grace tdf.Seconds
	log   *slog.Logger

	started        bool
	calm           tdf.Time // nothing running is settled before
	runID          string
	outages, dials int64
	clock          tdf.Time  // Redis's, when last looked at
	local          time.Time // ours at that moment
}

// Differences that are no event.
const (
	absence = tdf.Seconds(5) // between two servers
	leap    = tdf.Seconds(5) // between Redis's clock and ours, from one look to the next
)

// calmUntil returns the moment before which no running task may be lost, timed out or expired.
func (w *watch) calmUntil(ctx context.Context, now tdf.Time) (tdf.Time, error) {
	why, err := w.event(ctx, now)
	if err != nil || why == "" {
		return w.calm, err
	}
	lease, err := w.store.LongestLease(ctx, now)
	if err != nil {
		return w.calm, err
	}
	grace := max(w.grace, lease)
	w.calm = max(w.calm, now.Add(grace))
	if err := w.store.SetCalm(ctx, w.calm); err != nil {
		return w.calm, err
	}
	w.log.Warn("no running task is judged for a while, so that its worker can be heard", "seconds", float64(grace), "why", why)
	return w.calm, nil
}

// event says what has happened since the last look; "" for nothing.
func (w *watch) event(ctx context.Context, now tdf.Time) (string, error) {
	if !w.started {
		return w.start(ctx, now)
	}
	elapsed := tdf.For(time.Since(w.local))
	drift := now.Sub(w.clock) - elapsed
	w.clock, w.local = now, time.Now()
	outages, dials := w.store.Outages(), w.store.Dials()
	waited, dialed := outages != w.outages, dials != w.dials
	w.outages, w.dials = outages, dials
	if !waited && !dialed && absolute(drift) < leap {
		return "", nil
	}
	info, err := w.store.Info(ctx)
	if err != nil {
		return "", err
	}
	restarted := info.RunID() != w.runID || info.RunID() == "" && dialed
	w.runID = info.RunID()
	switch {
	case restarted:
		return "redis has started anew", nil
	case waited:
		return "redis was away", nil
	case absolute(drift) >= leap:
		return "redis's clock leapt", nil
	}
	return "", nil
}

// start: the first server ever has nothing to wait for; one that comes after a pause has, and
// one that comes while another one waits, too.
func (w *watch) start(ctx context.Context, now tdf.Time) (string, error) {
	info, err := w.store.Info(ctx)
	if err != nil {
		return "", err
	}
	last, err := w.store.LastServer(ctx)
	if err != nil {
		return "", err
	}
	if w.calm, err = w.store.Calm(ctx); err != nil {
		return "", err
	}
	w.started, w.runID = true, info.RunID()
	w.clock, w.local = now, time.Now()
	w.outages, w.dials = w.store.Outages(), w.store.Dials()
	if last > 0 && now.Sub(last) > absence {
		return "there was no server for a while", nil
	}
	return "", nil
}

func absolute(s tdf.Seconds) tdf.Seconds { return max(s, -s) }
