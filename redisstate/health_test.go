package redisstate

import (
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

func TestMemoryOf(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *Store) {
		ids := mustOpen(t, s, define("x"))
		real := infoOf(t, s)["redis_version"] != ""
		sizes, err := s.MemoryOf(t.Context(), append(ids, 99))
		if err != nil || len(sizes) != 2 || (sizes[0] > 100) != real || sizes[1] != 0 {
			t.Errorf("got %v, %v", sizes, err)
		}
	})
}

func infoOf(t *testing.T, s *Store) conn.Info {
	t.Helper()
	info, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestBetween(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *Store) {
		records := []Record{
			{ID: 1, Hash: tdf.Hash{"state": "open", "0:open": "1000"}},
			{ID: 2, Hash: tdf.Hash{"state": "open", "0:open": "900.5"}},
			{ID: 3, Hash: tdf.Hash{"state": "failed", "0:failed": "1000"}},
			{ID: 4, Hash: tdf.Hash{"state": "succeeded", "0:succeeded": "2000"}},
			{ID: 6, Hash: tdf.Hash{"state": "open", "0:open": "900", "start_after": "100000000000"}},
			{ID: 5, Hash: tdf.Hash{"state": "succeeded", "0:succeeded": "2001"}},
		}
		if _, err := s.Restore(t.Context(), records...); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Between(t.Context(), 1000, 2000, tdf.Failed, tdf.Succeeded); n != 2 || err != nil {
			t.Errorf("Between counts %d failed and succeeded tasks, %v", n, err)
		}
		if n, err := s.Between(t.Context(), 950, tdf.Never, tdf.Open); n != 2 || err != nil {
			t.Errorf("Between counts %d open tasks, %v", n, err)
		}
	})
}
