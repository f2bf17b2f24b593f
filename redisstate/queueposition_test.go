package redisstate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/redistest"
)

func TestQueuePosition(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		later := define("later")
		later.StartAfter = 5e9
		ids := mustOpen(t, s, later, define("first"), define("second"))
		for id, want := range map[int64]QueuePosition{
			ids[0]: {Listed: true, From: 5e9, Ahead: 2},
			ids[2]: {Listed: true, From: task(t, s, ids[1]).Rounds.At(0).Entered[tdf.Open] + 1e-6, Ahead: 1},
			99:     {},
		} {
			got, err := s.QueuePosition(t.Context(), id, "")
			if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b tdf.Time) bool { return a.String() == b.String() })); err != nil || diff != "" {
				t.Errorf("task %d: %s, %v", id, diff, err)
			}
		}
	})
}

func TestHasProgram(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		source, err := s.PutProgram(t.Context(), []byte("archive"))
		if err != nil {
			t.Fatal(err)
		}
		for sum, want := range map[string]bool{strings.TrimPrefix(source, "redis:"): true, strings.Repeat("0", 64): false} {
			if got, err := s.HasProgram(t.Context(), sum); got != want || err != nil {
				t.Errorf("%s is stored: %v, %v", sum, got, err)
			}
		}
		if full, err := s.Full(t.Context()); full || err != nil {
			t.Errorf("a Redis without a limit is full: %v, %v", full, err)
		}
	})
}

func TestFull(t *testing.T) {
	s := connect(t, redistest.Start(t).Addr, "full")
	if err := s.rdb.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if full, err := s.Full(t.Context()); !full || err != nil {
		t.Errorf("Redis at its limit does not count as full: %v, %v", full, err)
	}
}
