package main

import (
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
)

// By default tdf up has one slot per core, whatever the concurrency of a worker is.
func TestWorkersFor(t *testing.T) {
	for _, c := range []struct{ cores, concurrency, want int }{{8, 1, 8}, {8, 4, 2}, {8, 3, 2}, {2, 16, 1}, {8, 0, 1}, {5000, 1, mostWorkers}} {
		if got := workersFor(c.cores, c.concurrency); got != c.want {
			t.Errorf("%d cores, concurrency %d: %d workers, want %d", c.cores, c.concurrency, got, c.want)
		}
	}
}

// RUNS says how old it is when a heartbeat is overdue.
func TestRunsText(t *testing.T) {
	for age, want := range map[tdf.Seconds]string{0: "7 8", 11: "7 8", 25: "7 8 (25s ago)"} {
		w := admin.Worker{Lease: 30 * time.Second, Runs: []int64{7, 8}, Seen: time.Unix(1000, 0)}
		if got := runsText(w, tdf.Time(1000).Add(age)); got != want {
			t.Errorf("%v s after its heartbeat: %q, want %q", age, got, want)
		}
	}
}

func TestStateOfALostRound(t *testing.T) {
	task, _ := tdf.ParseTask(1, tdf.Hash{"state": "running", "0:claim": "c", "lease_until": "2000000000"})
	if got := stateAt(task, 1999999999) + ", " + stateAt(task, 2000000000); got != "running, running (lease over)" {
		t.Errorf("got %q", got)
	}
}
