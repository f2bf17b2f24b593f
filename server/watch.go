package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

type watched interface {
	Now(ctx context.Context) (tdf.Time, error)
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
	clock          reading // of Redis's clock, the last one
}

// A reading of Redis's clock was taken between two moments of ours. They may lie far apart, where
// Redis or the server was slow: that is no leap.
type reading struct {
	at            tdf.Time
	before, after time.Time
}

// leapt: since the reading before, Redis's clock went further than ours can have gone, or less far.
func (r reading) leapt(before reading) bool {
	passed := r.at.Sub(before.at)
	least, most := tdf.For(r.before.Sub(before.after)), tdf.For(r.after.Sub(before.before))
	return passed <= least-leap || passed >= most+leap
}

// Differences that are no event.
const (
	absence = tdf.Seconds(5) // between two servers
	leap    = tdf.Seconds(5) // between Redis's clock and ours, from one look to the next
)

// look returns the time by Redis's clock, and the moment before which no running task may be
// lost, timed out or expired.
func (w *watch) look(ctx context.Context) (now, calm tdf.Time, err error) {
	clock := reading{before: time.Now()}
	if now, err = w.store.Now(ctx); err != nil {
		return now, w.calm, err
	}
	clock.at, clock.after = now, time.Now()
	why, err := w.event(ctx, clock)
	if err != nil || why == "" {
		return now, w.calm, err
	}
	lease, err := w.store.LongestLease(ctx, now)
	if err != nil {
		return now, w.calm, err
	}
	grace := max(w.grace, lease)
	w.calm = max(w.calm, now.Add(grace))
	if err := w.store.SetCalm(ctx, w.calm); err != nil {
		return now, w.calm, err
	}
	w.log.Warn("no running task is judged for a while, so that its worker can be heard", "seconds", float64(grace), "why", why)
	return now, w.calm, nil
}

// event says what has happened since the last look; "" for nothing.
func (w *watch) event(ctx context.Context, clock reading) (string, error) {
	if !w.started {
		return w.start(ctx, clock)
	}
	leapt := clock.leapt(w.clock)
	w.clock = clock
	outages, dials := w.store.Outages(), w.store.Dials()
	waited, dialed := outages != w.outages, dials != w.dials
	w.outages, w.dials = outages, dials
	if !waited && !dialed && !leapt {
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
	case leapt:
		return "redis's clock leapt", nil
	}
	return "", nil
}

// start: the first server ever has nothing to wait for; one that comes after a pause has, and
// one that comes while another one waits, too.
func (w *watch) start(ctx context.Context, clock reading) (string, error) {
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
	w.clock = clock
	w.outages, w.dials = w.store.Outages(), w.store.Dials()
	if last > 0 && clock.at.Sub(last) > absence {
		return "there was no server for a while", nil
	}
	return "", nil
}
