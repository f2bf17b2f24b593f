package main

import (
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/redisstate"
)

// RUNS shows its age if a heartbeat is overdue.
func TestRunsText(t *testing.T) {
	for age, want := range map[tdf.Seconds]string{0: "7 8", 11: "7 8", 25: "7 8 (25s ago)"} {
		w := admin.Worker{WorkerStatus: redisstate.WorkerStatus{WorkerInfo: redisstate.WorkerInfo{Lease: 30, Runs: []int64{7, 8}}, Seen: 1000}}
		if got := runsText(w, tdf.Time(1000).Add(age)); got != want {
			t.Errorf("%v s after the heartbeat: %q, want %q", age, got, want)
		}
	}
}
