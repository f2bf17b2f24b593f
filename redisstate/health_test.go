package redisstate

import (
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

func TestMemoryOf(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		ids := mustOpen(t, s, define("x"))
		real := infoOf(t, s)["redis_version"] != ""
		sizes, err := s.MemoryOf(t.Context(), append(ids, 99))
		expect.True(t, err == nil && len(sizes) == 2 && (sizes[0] > 100) == real && sizes[1] == 0, sizes, err)
	})
}

func infoOf(t *testing.T, s *Store) conn.Info {
	t.Helper()
	info := expect.Result(s.Info(t.Context())).Value(t)
	return info
}

func TestBetween(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		records := []Record{
			{ID: 1, Hash: tdf.Hash{"state": "open", "0:open": "1000"}},
			{ID: 2, Hash: tdf.Hash{"state": "open", "0:open": "900.5"}},
			{ID: 3, Hash: tdf.Hash{"state": "failed", "0:failed": "1000"}},
			{ID: 4, Hash: tdf.Hash{"state": "succeeded", "0:succeeded": "2000"}},
			{ID: 6, Hash: tdf.Hash{"state": "open", "0:open": "900", "start_after": "100000000000"}},
			{ID: 5, Hash: tdf.Hash{"state": "succeeded", "0:succeeded": "2001"}},
		}
		expect.Result(s.Restore(t.Context(), records...)).OK(t)
		expect.Result(s.Between(t.Context(), 1000, 2000, tdf.Failed, tdf.Succeeded)).Is(t, 2, "Between counts … failed and succeeded tasks")
		expect.Result(s.Between(t.Context(), 950, tdf.Never, tdf.Open)).Is(t, 2, "Between counts … open tasks")
	})
}
