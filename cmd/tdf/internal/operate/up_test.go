package operate

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// By default, all workers of tdf up together have one slot per core.
func TestWorkersFor(t *testing.T) {
	for _, c := range []struct{ cores, concurrency, want int }{{8, 1, 8}, {8, 4, 2}, {8, 3, 2}, {2, 16, 1}, {8, 0, 1}, {5000, 1, maxWorkers}} {
		expect.Equal(t, workersFor(c.cores, c.concurrency), c.want, c.cores, "cores, concurrency", c.concurrency, "workers")
	}
}
