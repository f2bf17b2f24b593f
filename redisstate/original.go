package redisstate

import (
	"context"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// keepApart returns the definitions of new tasks. If workers of the original TDF work in the namespace, it returns a
// copy that keeps tasks from them.
func (s *Store) keepApart(ctx context.Context, definitions []task.Properties) ([]task.Properties, error) {
	if !slices.ContainsFunc(definitions, func(d task.Properties) bool { return !task.OriginalFetches(d.Source) }) {
		return definitions, nil
	}
	settings, _, err := s.known(ctx, roomForOpens)
	if err != nil || !settings.OriginalWorkers {
		return definitions, err
	}
	definitions = slices.Clone(definitions)
	for i := range definitions {
		definitions[i].Apart = true
	}
	return definitions, nil
}

// markApart does the same for tasks that were read. Only tasks that are or may become open need it.
func (s *Store) markApart(ctx context.Context, stored []Stored) error {
	var apart []*task.Task
	for i := range stored {
		t := stored[i].Task
		if t != nil && (t.State == task.Open || t.State.Finished()) && !task.OriginalFetches(t.Source) {
			apart = append(apart, t)
		}
	}
	if len(apart) == 0 {
		return nil
	}
	settings, _, err := s.known(ctx, roomForClaims)
	for _, t := range apart {
		t.Apart = settings.OriginalWorkers
	}
	return err
}

// readArchived completes the properties of finished tasks that are in the list archived. A manager of the original TDF
// archives a task by moving its id there, and leaves its state.
func (s *Store) readArchived(ctx context.Context, ids []int64, hashes []task.Hash) error {
	var finished []int64
	for i, h := range hashes {
		if task.State(h["state"]).Settled() {
			finished = append(finished, ids[i])
		}
	}
	archived, err := s.archivedAt(ctx, finished)
	for i, h := range hashes {
		if at, is := archived[ids[i]]; is {
			h.Archive(at)
		}
	}
	return err
}

// archivedAt returns when tasks were archived: the scores of the ids in the list archived. It leaves out the ids that
// are not in this list.
func (s *Store) archivedAt(ctx context.Context, ids []int64) (map[int64]task.Time, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	args := []any{"ZMSCORE", s.Keys.List(task.Archived)}
	for _, id := range ids {
		args = append(args, id)
	}
	var scores *redis.Cmd
	if err := s.Conn.Pipeline(ctx, "look up tasks in the list archived",
		func(p redis.Pipeliner) { scores = p.Do(ctx, args...) }); err != nil {
		return nil, err
	}
	at := map[int64]task.Time{}
	for i, score := range conn.List(scores.Val()) {
		if found, err := strconv.ParseFloat(conn.Text(score), 64); err == nil {
			at[ids[i]] = task.Time(found)
		}
	}
	return at, nil
}
