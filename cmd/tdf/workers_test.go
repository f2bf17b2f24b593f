package main

import (
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
)

// If a heartbeat is overdue, the column RUNS shows how old it is.
func TestRunsText(t *testing.T) {
	for age, want := range map[tdf.Seconds]string{0: "7 8", 11: "7 8", 25: "7 8 (25s ago)"} {
		w := admin.Worker{Lease: 30 * time.Second, Runs: []int64{7, 8}, Seen: time.Unix(1000, 0)}
		if got := runsText(w, tdf.Time(1000).Add(age)); got != want {
			t.Errorf("%v s after the heartbeat: %q, want %q", age, got, want)
		}
	}
}
