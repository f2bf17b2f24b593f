package server

import (
	"context"
	"slices"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate"
)

// walkStore is a store whose open list has the given ids. It counts the pages of the walk.
type walkStore struct {
	auditStore
	open  []int64
	pages int
}

func (s *walkStore) Overlooked(context.Context, tdf.Time, tdf.Time) ([]int64, error) { return nil, nil }

func (s *walkStore) List(context.Context, tdf.State, string, int64, int64) ([]int64, error) {
	return s.open, nil
}

func (s *walkStore) Walk(_ context.Context, from redisstate.WalkPage, _ int64) ([]int64, redisstate.WalkPage, bool, error) {
	s.pages++
	return []int64{1000 + int64(s.pages)}, from, false, nil
}

// Between two walks, an audit examines only these tasks at the head of the open list: the tasks that are new there, and
// the tasks that no audit has examined for headPause.
func TestWhatAnAuditExamines(t *testing.T) {
	t.Parallel()
	store := &walkStore{open: []int64{1, 2}}
	a := audit{store: store}
	for _, c := range []struct {
		at    tdf.Time
		walks bool
		open  []int64
		want  []int64
		pages int
	}{
		{100, true, []int64{1, 2}, []int64{1, 2, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010}, 10},
		{101, false, []int64{1, 2}, nil, 10},
		{102, false, []int64{2, 3}, []int64{3}, 10},
		{103, false, []int64{1, 3}, []int64{1}, 10}, // task 1 is at the head of the list again
		{159, false, []int64{1, 3}, nil, 10},
		{162, false, []int64{1, 3}, []int64{3}, 10},
		{90, false, []int64{1, 3}, []int64{1, 3}, 10}, // the clock was set back
	} {
		store.open = c.open
		ids, err := a.ids(t.Context(), c.at, c.walks)
		if err != nil || !slices.Equal(ids, c.want) || store.pages != c.pages {
			t.Errorf("at %v: %v after %d pages, %v; want %v after %d", c.at, ids, store.pages, err, c.want, c.pages)
		}
	}
}

// An audit walks if walkPause has passed since the last walk, or if the clock was set back.
func TestAuditWalks(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		s.round()
		first := s.server.audit.walked
		expect.MustTrue(t, first != 0, "the first audit did not walk")
		s.round()
		expect.Equal(t, s.server.audit.walked, first, "the second audit walked")
		for _, walked := range []tdf.Time{first.Add(-walkPause), s.now().Add(3600)} {
			s.server.audit.walked = walked
			s.round()
			got := s.server.audit.walked
			expect.True(t, got != walked && got <= s.now(), "the walk at", walked, "was followed by one at", got)
		}
	})
}
