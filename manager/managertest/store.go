package managertest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// store is the world as a manager sees it.
type store struct{ *world }

func (s store) Now(context.Context) (tdf.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, nil
}

// LastServer is now: there always is one.
func (s store) LastServerHeartbeat(ctx context.Context) (tdf.Time, error) { return s.Now(ctx) }

func (s store) Open(_ context.Context, who string, definitions ...tdf.Properties) ([]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.apply(who, redisstate.Unit{Open: definitions}).IDs, nil
}

func (s store) OpenGroup(_ context.Context, who string, definitions ...tdf.Properties) ([]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := redisstate.Unit{Open: definitions}
	if len(definitions) > 0 {
		u.NewGroup = definitions[0].Group
	}
	o := s.apply(who, u)
	return o.IDs, o.Err
}

func (s store) Apply(_ context.Context, who string, units ...redisstate.Unit) ([]redisstate.Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	outcomes := make([]redisstate.Outcome, len(units))
	for i, u := range units {
		outcomes[i] = s.apply(who, u)
	}
	return outcomes, nil
}

func (s store) Read(_ context.Context, ids []int64, want redisstate.Want) ([]redisstate.Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored := make([]redisstate.Stored, len(ids))
	for i, id := range ids {
		var h tdf.Hash
		if e := s.tasks[id]; e != nil {
			h = e.hash
		}
		stored[i] = want.ReadFrom(id, h)
	}
	return stored, nil
}

func (s store) ReadOne(ctx context.Context, id int64, want redisstate.Want) (redisstate.Stored, error) {
	stored, err := s.Read(ctx, []int64{id}, want)
	if stored[0].Task == nil {
		err = fmt.Errorf("task %d: %w", id, tdf.ErrNoTask)
	}
	return stored[0], err
}

// List orders as Redis does: by when a task entered, or in a group by id.
func (s store) List(_ context.Context, state tdf.State, group string, offset, most int64) ([]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := slices.DeleteFunc(s.ids(), func(id int64) bool {
		e := s.tasks[id]
		return e.state() != state || group != "" && e.group() != group
	})
	if group == "" {
		slices.SortStableFunc(ids, func(a, b int64) int { return cmp.Compare(s.tasks[a].score, s.tasks[b].score) })
	}
	ids = ids[min(offset, int64(len(ids))):]
	return ids[:min(most, int64(len(ids)))], nil
}

func (s store) Counts(_ context.Context, groups ...string) (redisstate.Counts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := redisstate.Counts{}
	for _, e := range s.tasks {
		if len(groups) == 0 || slices.Contains(groups, e.group()) {
			counts[e.state()]++
		}
	}
	return counts, nil
}

func (s store) Close() error { return nil }

// Wait lets the test's time pass. That nothing will ever happen again fails the test.
func (s store) Wait(ctx context.Context, most time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass(s.now.Add(tdf.For(most)))
	err := s.stuck()
	if err != nil {
		s.t.Errorf("%v", err)
	}
	return err
}
