package dashboard

import (
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/expect"
)

// A chart has bars for what succeeded, bars above them for what failed, and an area for a time without counts.
func TestHistoryChart(t *testing.T) {
	t.Parallel()
	now := time.Unix(100_000, 0)
	at := func(minutes int) time.Time { return now.Add(time.Duration(minutes-60) * time.Minute) }
	h := historyOf("hour", "Last hour", at(0), now, admin.Period{Steps: []admin.Interval{
		{From: at(-1), To: at(1), Succeeded: 4, Failed: 4},
		{From: at(1), To: at(30), Succeeded: 900, Failed: 9, Gap: true},
		{From: at(30), To: at(31), Failed: 2},
		{From: at(31), To: at(60)},
	}})
	expect.Equal(t, h.Highest, 4.0, "ends a minute")
	expect.Equal(t, h.Good, "M0.0 80.0V40.0H10.0V80.0z", "succeeded")
	expect.Equal(t, h.Bad, "M0.0 40.0V0.0H10.0V40.0zM300.0 80.0V40.0H310.0V80.0z", "failed")
	expect.Equal(t, h.Gaps, "M10.0 80.0V0.0H300.0V80.0z", "gaps")
	expect.Equal(t, minutely(h.Steps[1]), "no counts", "a gap")
	expect.Equal(t, minutely(h.Steps[0]), "4", "the first step")
	empty := historyOf("day", "Last day", now, now, admin.Period{Steps: []admin.Interval{{From: now, To: now}}})
	expect.Equal(t, empty.Good+empty.Bad+empty.Gaps, "")
	expect.Equal(t, empty.Highest, 0)
}
