package redisstate

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestRenewalsAreCutByTheirUpdates(t *testing.T) {
	t.Parallel()
	many := make([]string, 64_000)
	pieces, of := renewalPieces([]LeaseRenewal{{ID: 1}, {ID: 2, Report: LiveReport{Updates: many, FirstUpdate: 5}}, {ID: 3}})
	expect.MustLen(t, pieces, 2+128)
	expect.MustEqual(t, of[0], 0)
	expect.MustEqual(t, of[1], 1)
	expect.MustEqual(t, of[129], 2)
	last := pieces[128].Report
	expect.Equal(t, last.FirstUpdate, 5+127*maxUpdatesPerCall)
	expect.Len(t, last.Updates, maxUpdatesPerCall)
	for len(pieces) > 0 {
		n, updates := renewalBatch(pieces), 0
		for _, p := range pieces[:n] {
			updates += len(p.Report.Updates)
		}
		expect.MustTrue(t, updates <= maxUpdatesPerCall, "a call has", updates, "updates, which are too many")
		pieces = pieces[n:]
	}
}
