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
func (s store) LastServer(ctx context.Context) (tdf.Time, error) { return s.Now(ctx) }

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

func (s store) Load(_ context.Context, ids []int64) ([]redisstate.Seen, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := make([]redisstate.Seen, len(ids))
	for i, id := range ids {
		seen[i] = redisstate.Seen{ID: id, Task: s.task(id)}
	}
	return seen, nil
}

func (s store) Task(_ context.Context, id int64) (*tdf.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.task(id); t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("task %d: %w", id, tdf.ErrNoTask)
}

func (s store) Tasks(_ context.Context, ids ...int64) ([]*tdf.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tasks := make([]*tdf.Task, len(ids))
	for i, id := range ids {
		tasks[i] = s.task(id)
	}
	return tasks, nil
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
