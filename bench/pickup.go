package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/bench/redisserver"
	"github.com/tdf-framework/tdf/redisstate"
)

// pickups is the number of tasks in the measurement.
const pickups = 500

// pickup measures how soon an idle worker claims a new task. The time runs from the start of the call that opens the task to
// the end of the call that claims it.
func pickup(ctx context.Context, r *redisserver.Server, w io.Writer) error {
	store, err := connect(ctx, r, "pickup")
	if err != nil {
		return err
	}
	defer store.Close()
	waker := store.WakeWorker()
	defer waker.Close()
	opened := make(chan time.Time, 1)
	var took []time.Duration
	for range pickups {
		go func() {
			time.Sleep(2 * time.Millisecond) // by then, the worker is idle
			opened <- time.Now()
			_, _ = store.Open(ctx, "manager", tdf.Defaults("bench", "rsync:/srv/bench/run.sh", ""))
		}()
		for claimed := false; !claimed; {
			waker.Wait(ctx, time.Second)
			c, err := store.Claim(ctx, redisstate.ClaimRequest{Worker: "worker", Most: 1, Lease: 600})
			if err != nil {
				return err
			}
			claimed = len(c.Claims) > 0
		}
		took = append(took, time.Since(<-opened))
	}
	slices.Sort(took)
	fmt.Fprintf(w, "\npickup when idle: median %.2f ms, 99th percentile %.2f ms\n",
		took[pickups/2].Seconds()*1000, took[pickups*99/100].Seconds()*1000)
	return nil
}
