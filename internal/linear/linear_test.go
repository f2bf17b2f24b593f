package linear

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.M{M: m}.Run()) }

// number returns the value of an environment variable, or another number if it is not set.
func number(t *testing.T, variable string, other uint64) uint64 {
	if text := os.Getenv(variable); text != "" {
		return expect.Result(strconv.ParseUint(text, 10, 64)).Value(t)
	}
	return other
}

// Histories with faults and restarts are linearizable. TDF_HISTORIES is their number, and TDF_SEED the first seed.
func TestHistories(t *testing.T) {
	first := number(t, "TDF_SEED", rand.Uint64N(1_000_000))
	server := redistest.Start(t, redistest.AOF("always"))
	calls, unknown, faults := 0, 0, 0
	for seed := first; seed < first+number(t, "TDF_HISTORIES", 1) && !t.Failed(); seed++ {
		h := &history{TB: t, size: usual, redis: server}
		h.plain = seed%4 == 0
		h.run(seed)
		for _, text := range append(violations(t, h.ops), h.problems...) {
			t.Errorf("seed %d: %s", seed, text)
		}
		for _, o := range h.ops {
			calls++
			if o.ends == never {
				unknown++
			}
		}
		faults += h.restarts
		for _, name := range faultNames {
			faults += h.faults[name]
		}
	}
	t.Logf("%d calls, of which %d have an unknown outcome, and %d faults", calls, unknown, faults)
}
