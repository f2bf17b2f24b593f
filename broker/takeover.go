package broker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A Takeover says how a worker takes a name that another worker may have.
type Takeover struct {
	// Gone reports whether a process has certainly ended. It knows only processes of this machine.
	Gone  func(process string) bool
	Sleep func(context.Context, time.Duration)
	Log   *slog.Logger
}

// TakeName takes a worker's name. If another worker has the name, TakeName takes the name only if that worker is gone.
// A worker may also be silent because Redis was away. If no server can rule that out, TakeName waits for the length of
// the other worker's lease. It also returns the time by Redis's clock since which this worker has the name. If the name
// belongs to a live worker, the error is a *[presence.NameTakenError].
func (d *Direct) TakeName(ctx context.Context, w presence.WorkerInfo, o Takeover) (drained string, since tdf.Time,
	err error,
) {
	var before presence.PriorOwner
	var boot string
	for outages := int64(-1); ; {
		drained, since, err = d.DirectStore.TakeName(ctx, w, before)
		var taken *presence.NameTakenError
		switch {
		case !errors.As(err, &taken):
			return drained, since, err
		case o.Gone(taken.Process) && before.Gone != taken.Boot:
			before.Gone = taken.Boot
			continue
		case !taken.Silent() || boot != "" && taken.Boot != boot:
			return "", 0, err
		}
		if now := d.Outages(); boot == "" || now != outages || taken.Seen != before.Seen {
			boot, outages = taken.Boot, now
			before.Seen, before.Since = taken.Seen, taken.Now
			o.Log.Warn("the name belongs to a worker that sends no heartbeats: waiting in case only Redis was away",
				"host", taken.Host, "pid", taken.PID, "seconds", float64(taken.Lease))
		}
		o.Sleep(ctx, min(taken.Lease.Std()/4+time.Millisecond, time.Second))
		if ctx.Err() != nil {
			return "", 0, context.Cause(ctx)
		}
	}
}
