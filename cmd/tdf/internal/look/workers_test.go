package look

import (
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/expect"
)

// If the next heartbeat is overdue, the column RUNS shows the age of the last heartbeat.
func TestRunsText(t *testing.T) {
	for age, want := range map[time.Duration]string{0: "7 8", 11 * time.Second: "7 8", 25 * time.Second: "7 8 (25s ago)"} {
		w := admin.Worker{Lease: 30 * time.Second, Runs: []int64{7, 8}, Seen: time.Unix(1000, 0)}
		expect.Equal(t, runsText(w, w.Seen.Add(age)), want, age, "after the heartbeat")
	}
}
