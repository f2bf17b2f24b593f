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

// pickups is how often the time is measured; each is a task opened while the worker is idle.
const pickups = 500

// pickup measures how long an idle worker takes to have a task that is opened, from before the
// call that opens it to after the one that claims it.
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
			time.Sleep(2 * time.Millisecond) // the worker is idle by now
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
