package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// link is what a server asks of the connection to Redis.
type link interface {
	Replication(info conn.Info) conn.Replication
	Info(ctx context.Context, sections ...string) (conn.Info, error)
	Outages() int64
	Dials() int64
}

type watchStore interface {
	link
	Now(ctx context.Context) (task.Time, error)
	LastServerHeartbeat(ctx context.Context) (task.Time, error)
	LongestLease(ctx context.Context, now task.Time) (task.Seconds, error)
	Grace(ctx context.Context) (rules.Grace, error)
	SetGrace(ctx context.Context, g rules.Grace) error
}

// watch begins grace periods after three kinds of events: Redis was away or restarted, Redis's clock leapt, or no
// server ran for a while. In a grace period, workers can renew their leases before a task is declared lost
// (docs/guarantees.md, "After an outage").
type watch struct {
	store watchStore
	grace task.Seconds
	log   *slog.Logger
	clock func() time.Time // the clock of this process

	// last is the observation of the last complete look. A failed look does not change it, so that the next look
	// notices the same event again.
	last observation
	kept rules.Grace // the grace period at the last complete look

	earlier task.Time // the last heartbeat of any server before this server started; 0 if there was none
}

// An observation is the result of one look.
type observation struct {
	started        bool
	runID          string
	primary        string // its address
	outages, dials int64
	clock          reading // the reading of Redis's clock
}

// An event is a reason to begin a grace period.
type event struct {
	why  string // "" means no event
	leap bool   // Redis's clock has leapt, or may have leapt
	back bool   // Redis's clock was set back
}

// A reading is a time of Redis's clock, with the times of this process's clock before and after the call that read it.
// If Redis or the server is slow, these two times are far apart, although no clock has leapt.
type reading struct {
	at            task.Time
	before, after time.Time
}

// leapt reports whether Redis's clock leapt between two readings, and whether it was set back.
func (r reading) leapt(before reading) (leapt, back bool) {
	passed := r.at.Sub(before.at)
	shortest, longest := task.For(r.before.Sub(before.after)), task.For(r.after.Sub(before.before))
	back = passed <= shortest-leap
	return back || passed >= longest+leap, back
}

// Limits in seconds. If a look finds a time beyond one of these limits, this is an event.
const (
	absence = rules.ServerAbsence // how long no server has sent a heartbeat
	leap    = rules.ServerAbsence // how far Redis's clock has diverged from this process's clock since the last look
)

// look returns the time of Redis's clock, and the current grace period.
func (w *watch) look(ctx context.Context) (now task.Time, g rules.Grace, err error) {
	ctx = conn.Between(ctx, nil) // a heartbeat between these calls would look, too
	clock := reading{before: w.clock()}
	if now, err = w.store.Now(ctx); err != nil {
		return now, g, err
	}
	clock.at, clock.after = now, w.clock()
	if g, err = w.store.Grace(ctx); err != nil {
		return now, g, err
	}
	seen, e, err := w.observe(ctx, clock)
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

// begin begins a grace period for all servers. If the clock was set back, begin shortens an earlier grace period. If
// begin did not shorten it, the earlier grace period would last until the clock reaches the old end of this period.
func (w *watch) begin(ctx context.Context, now task.Time, g rules.Grace, e event) (rules.Grace, error) {
	lease, err := w.store.LongestLease(ctx, now)
	if err != nil {
		return g, err
	}
	grace := max(w.grace, lease)
	end := now.Add(grace)
	if e.back {
		g = rules.Grace{CheckFuture: true}
	}
	g.Running = max(g.Running, end)
	if e.leap {
		g.Open = max(g.Open, end)
	}
	if err := w.store.SetGrace(ctx, g); err != nil {
		return g, err
	}
	w.log.Warn("grace period begins", "seconds", float64(grace), "why", e.why)
	return g, nil
}

// observe returns a new observation, and the event since the last look, if there was an event.
func (w *watch) observe(ctx context.Context, clock reading) (observation, event, error) {
	if !w.last.started {
		return w.start(ctx, clock)
	}
	seen := observation{
		started: true, runID: w.last.runID, primary: w.last.primary, clock: clock, outages: w.store.Outages(),
		dials: w.store.Dials(),
	}
	leapt, back := clock.leapt(w.last.clock)
	waited, dialed := seen.outages != w.last.outages, seen.dials != w.last.dials
	if !waited && !dialed && !leapt {
		return seen, event{}, nil
	}
	info, err := w.store.Info(ctx)
	if err != nil {
		return seen, event{}, err
	}
	restarted := info.RunID() != w.last.runID
	seen.runID, seen.primary = info.RunID(), w.store.Replication(info).Primary
	e := event{leap: leapt, back: back}
	switch {
	case restarted && seen.primary != w.last.primary:
		e.why = "redis has another primary"
	case restarted:
		e.why = "redis restarted"
	case waited:
		e.why = "redis was away"
	case leapt:
		e.why = "redis's clock leapt"
	}
	return seen, e, nil
}

// start makes the first look of a server. The first server of a namespace needs no grace period. A later server needs a
// grace period if the last heartbeat of any server is old or lies in the future. A heartbeat in the future means that
// the clock was set back. If the clock leapt forward while no server ran, the heartbeat is old.
func (w *watch) start(ctx context.Context, clock reading) (observation, event, error) {
	seen := observation{started: true, clock: clock, outages: w.store.Outages(), dials: w.store.Dials()}
	info, err := w.store.Info(ctx)
	if err != nil {
		return seen, event{}, err
	}
	seen.runID, seen.primary = info.RunID(), w.store.Replication(info).Primary
	last, err := w.store.LastServerHeartbeat(ctx)
	if err != nil {
		return seen, event{}, err
	}
	w.earlier = last
	// read the clock again, because another server's heartbeat may be later than the first reading
	now, err := w.store.Now(ctx)
	if err != nil {
		return seen, event{}, err
	}
	switch {
	case last.Sub(now) > leap:
		return seen, event{"redis's clock was set back", true, true}, nil
	case last > 0 && clock.at.Sub(last) > absence:
		return seen, event{"no server ran for a while", true, false}, nil
	}
	return seen, event{}, nil
}
