package manager

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A batch has at most n tasks. At most fresh of these tasks have no entry, because no earlier round has seen them.
func TestUpTo(t *testing.T) {
	t.Parallel()
	ids := make([]int64, 100)
	b := backoff{}
	for i := range ids {
		ids[i] = int64(i)
		if i < 50 {
			b[ids[i]] = &retry{}
		}
	}
	for _, c := range []struct{ n, fresh, want int }{
		{64, 1024, 64}, {200, 1024, 100}, {64, 10, 60}, {64, 0, 50}, {10, 0, 10}, {64, 14, 64}, {64, 13, 63},
	} {
		if got := b.upTo(ids, c.n, c.fresh); len(got) != c.want || got[0] != 0 {
			t.Errorf("at most %d tasks, of which at most %d have no entry: got %d, want %d", c.n, c.fresh, len(got), c.want)
		}
	}
	expect.Len(t, b.upTo(ids[50:], 64, 0), 0)
	expect.Len(t, b.upTo(nil, 64, 5), 0)
}
