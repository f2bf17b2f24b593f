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
	LastServerHeartbeat(ctx context.Context) (tdf.Time, error)
	LongestLease(ctx context.Context, now tdf.Time) (tdf.Seconds, error)
	Grace(ctx context.Context) (redisstate.Grace, error)
	SetGrace(ctx context.Context, g redisstate.Grace) error
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

	// last is what the last complete look found. A look that fails changes nothing, so the next one
	// finds the same event.
	last sight
	kept redisstate.Grace // the grace period as of the last complete look
}

// A sight is what one look finds.
type sight struct {
	started        bool
	runID          string
	outages, dials int64
	clock          reading // of Redis's clock
}

// An event begins a grace period.
type event struct {
	why  string // "": nothing happened
	leap bool   // Redis's clock leapt, or may have
	back bool   // it was set back
}

// A reading of Redis's clock was taken between two moments of ours. They may lie far apart, where
// Redis or the server was slow: that is no leap.
type reading struct {
	at            tdf.Time
	before, after time.Time
}

// leapt: since the reading before, Redis's clock went further than ours can have gone, or less far (back).
func (r reading) leapt(before reading) (leapt, back bool) {
	passed := r.at.Sub(before.at)
	least, most := tdf.For(r.before.Sub(before.after)), tdf.For(r.after.Sub(before.before))
	back = passed <= least-leap
	return back || passed >= most+leap, back
}

// Differences that are no event.
const (
	absence = tdf.ServerAbsence // between two servers
	leap    = tdf.ServerAbsence // between Redis's clock and ours, from one look to the next
)

// look returns the time by Redis's clock, and the grace period that is kept.
func (w *watch) look(ctx context.Context) (now tdf.Time, g redisstate.Grace, err error) {
	clock := reading{before: time.Now()}
	if now, err = w.store.Now(ctx); err != nil {
		return now, g, err
	}
	clock.at, clock.after = now, time.Now()
	if g, err = w.store.Grace(ctx); err != nil {
		return now, g, err
	}
	seen, e, err := w.event(ctx, clock)
	if err != nil {
		return now, g, err
	}
	if e.why != "" {
		if g, err = w.begin(ctx, now, g, e); err != nil {
			return now, g, err
		}
	}
	w.last, w.kept = seen, g
	return now, g, nil
}

// begin has all servers keep a grace period from now on. One that was begun before the clock was set back
// would last until the clock is there again, so it is cut short.
func (w *watch) begin(ctx context.Context, now tdf.Time, g redisstate.Grace, e event) (redisstate.Grace, error) {
	lease, err := w.store.LongestLease(ctx, now)
	if err != nil {
		return g, err
	}
	grace := max(w.grace, lease)
	end := now.Add(grace)
	if e.back {
		g = redisstate.Grace{CheckFuture: true}
	}
	g.Running = max(g.Running, end)
	if e.leap {
		g.Open = max(g.Open, end)
	}
	if err := w.store.SetGrace(ctx, g); err != nil {
		return g, err
	}
	w.log.Warn("no running task is judged for a while, so that its worker can be heard", "seconds", float64(grace), "why", e.why)
	return g, nil
}

// event says what has happened since the last look.
func (w *watch) event(ctx context.Context, clock reading) (sight, event, error) {
	if !w.last.started {
		return w.start(ctx, clock)
	}
	seen := sight{started: true, runID: w.last.runID, clock: clock, outages: w.store.Outages(), dials: w.store.Dials()}
	leapt, back := clock.leapt(w.last.clock)
	waited, dialed := seen.outages != w.last.outages, seen.dials != w.last.dials
	if !waited && !dialed && !leapt {
		return seen, event{}, nil
	}
	info, err := w.store.Info(ctx)
	if err != nil {
		return seen, event{}, err
	}
	restarted := info.RunID() != w.last.runID || info.RunID() == "" && dialed
	seen.runID = info.RunID()
	e := event{leap: leapt, back: back}
	switch {
	case restarted:
		e.why = "redis has started anew"
	case waited:
		e.why = "redis was away"
	case leapt:
		e.why = "redis's clock leapt"
	}
	return seen, e, nil
}

// start: the first server ever has nothing to wait for; one that comes after a pause has, and
// one that comes while another one waits, too. That the clock leapt while no server was there, the
// heartbeat of the last one tells only if it lies in the future.
func (w *watch) start(ctx context.Context, clock reading) (sight, event, error) {
	seen := sight{started: true, clock: clock, outages: w.store.Outages(), dials: w.store.Dials()}
	info, err := w.store.Info(ctx)
	if err != nil {
		return seen, event{}, err
	}
	seen.runID = info.RunID()
	last, err := w.store.LastServerHeartbeat(ctx)
	if err != nil {
		return seen, event{}, err
	}
	now, err := w.store.Now(ctx) // again: another server may have been seen after the clock was read
	if err != nil {
		return seen, event{}, err
	}
	switch {
	case last.Sub(now) > leap:
		return seen, event{"redis's clock was set back", true, true}, nil
	case last > 0 && clock.at.Sub(last) > absence:
		return seen, event{"there was no server for a while", true, false}, nil
	}
	return seen, event{}, nil
}
