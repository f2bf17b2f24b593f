package operate

import "testing"

// By default, all workers of tdf up together have one slot per core.
func TestWorkersFor(t *testing.T) {
	for _, c := range []struct{ cores, concurrency, want int }{{8, 1, 8}, {8, 4, 2}, {8, 3, 2}, {2, 16, 1}, {8, 0, 1}, {5000, 1, maxWorkers}} {
		if got := workersFor(c.cores, c.concurrency); got != c.want {
			t.Errorf("%d cores, concurrency %d: %d workers, want %d", c.cores, c.concurrency, got, c.want)
		}
	}
}
