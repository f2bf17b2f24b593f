package worker

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate"
)

// renewing is a store that counts the calls of Renew.
type renewing struct {
	*redisstate.Store
	calls atomic.Int64
}

func (r *renewing) Renew(ctx context.Context, lease tdf.Seconds, renewals ...redisstate.Renewal) (redisstate.Renewed, error) {
	r.calls.Add(1)
	return r.Store.Renew(ctx, lease, renewals...)
}

// If a task is lost while its round has much to report, the worker does not repeat the report.
func TestLostRoundReportsOnce(t *testing.T) {
	w := newWorld(t)
	w.script("p", "#!/bin/sh\necho begun >\"$1\"; read line <\"$1\"; seq 1 5000 >$TDF_DIR/updates\n")
	p := w.pipe()
	id := w.open(p.path)
	store := &renewing{Store: w.store}
	wait := w.background(t.Context(), w.workerOn(store))
	p.begun()
	p.ended()
	w.requeue(id)
	p.release()
	wait()
	n := store.calls.Load()
	expect.True(t, n <= 3, n, "renewals")
}

// Even many updates of a round arrive in a few calls.
func TestAllUpdatesArrive(t *testing.T) {
	w := newWorld(t)
	w.script("p", "#!/bin/sh\nseq 1 5000 >$TDF_DIR/updates\n")
	id := w.open("")
	store := &renewing{Store: w.store}
	w.runOnce(w.workerOn(store))
	all := expect.Result(w.store.Updates(t.Context(), id, redisstate.Update{}, 10_000)).Value(t)
	n := store.calls.Load()
	expect.True(t, len(all) == 5000 && all[4999].Number == 5000 && all[4999].Line == "5000" && n <= 10, len(all), "updates in", n, "calls")
}

// The last output of a released round is reported.
func TestReleasedRoundKeepsItsTail(t *testing.T) {
	w := newWorld(t)
	w.cfg.Grace, w.cfg.KillGrace = 0, time.Second
	w.script("p", "#!/bin/sh\necho printed; echo begun >\"$1\"; exec sleep 1000\n")
	p := w.pipe()
	id := w.open(p.path)
	ctx, stop := context.WithCancel(t.Context())
	wait := w.background(ctx, w.worker())
	p.begun()
	stop()
	wait()
	if task := w.task(id); task.State != tdf.Open || task.Releases != 1 || task.Rounds.At(0).Tail != "printed\n" {
		t.Errorf("%s, released %d times, tail %q", task.State, task.Releases, task.Rounds.At(0).Tail)
	}
}
