package worker

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/redistest"
)

// told is what w1 says about itself.
func (w *world) told() map[string]string {
	w.Helper()
	client := redis.NewClient(&redis.Options{Addr: redistest.Shared(w)})
	defer client.Close()
	h, err := client.HGetAll(w.Context(), w.cfg.Namespace+":worker:w1").Result()
	must(w, err)
	return h
}

func (w *world) workerState() string {
	w.Helper()
	return w.told()["state"]
}

func TestAWorkerSaysThatItIsAlive(t *testing.T) {
	w := newWorld(t)
	w.cfg.Lease = 90 * time.Millisecond
	w.cfg.SleepAfterNoProcessClaimed = time.Hour
	worker := w.worker()
	worker.Version = "v1.2.3"
	ctx, stop := context.WithCancel(t.Context())
	wait := w.until(ctx, worker)
	eventually(t, "the first sign", func() bool { return w.told()["seen"] != "" })
	first := w.told()
	eventually(t, "another one, idle", func() bool { return w.told()["seen"] > first["seen"] })
	stop()
	wait()
	delete(first, "seen")
	host, err := os.Hostname()
	must(t, err)
	want := map[string]string{
		"host": host, "pid": strconv.Itoa(os.Getpid()), "boot": w.store.Boot(),
		"version": "v1.2.3", "lease": "0.090000", "state": "working",
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
}
