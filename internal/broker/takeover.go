package broker

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A NameTaken error means that another worker has the name of this one.
type NameTaken interface {
	error
	NameTaken()
}

// A Takeover says how a worker takes a name that another worker may have.
type Takeover struct {
	// Gone reports whether a process has certainly ended. It knows only processes of this machine.
	Gone  func(process string) bool
	Sleep func(context.Context, time.Duration)
	Log   *slog.Logger
}

// TakeName takes a worker's name. If another worker has the name, TakeName takes the name only if that worker is gone.
// A worker may also be silent because Redis was away. If no server can rule that out, TakeName waits for the length of
// the other worker's lease. If the name belongs to a live worker, the error is a *[presence.NameTakenError].
func (d *Direct) TakeName(ctx context.Context, w presence.WorkerInfo, o Takeover) (drained string, err error) {
	var before presence.PriorOwner
	var boot string
	for outages := int64(-1); ; {
		drained, d.since, err = d.store.TakeName(ctx, w, before)
		var taken *presence.NameTakenError
		switch {
		case !errors.As(err, &taken):
			return drained, err
		case o.Gone(taken.Process) && before.Gone != taken.Boot:
			before.Gone = taken.Boot
			continue
		case !taken.Silent() || boot != "" && taken.Boot != boot:
			return "", err
		}
		if now := d.store.Outages(); boot == "" || now != outages || taken.Seen != before.Seen {
			boot, outages = taken.Boot, now
			before.Seen, before.Since = taken.Seen, taken.Now
			o.Log.Warn("the name belongs to a worker that sends no heartbeats: waiting in case only Redis was away",
				"host", taken.Host, "pid", taken.PID, "seconds", float64(taken.Lease))
		}
		o.Sleep(ctx, min(taken.Lease.Std()/4+time.Millisecond, time.Second))
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
	}
}

// GiveUp gives up the claims of the earlier worker of this name, and returns their number.
func (d *Direct) GiveUp(ctx context.Context) (int, error) {
	return d.store.GiveUp(ctx, d.name, d.since)
}

// Gone returns those of the names that belong to no live worker.
func (d *Direct) Gone(ctx context.Context, names []string) (gone []string, err error) {
	now, err := d.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	workers, err := d.store.Workers(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(workers, func(w presence.WorkerStatus) bool { return w.Name == name && w.Alive(now) })
	}), nil
}
