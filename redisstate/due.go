package redisstate

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A Due identifies a due task.
type Due struct {
	ID    int64
	Score string // the task's score in `due`: the fence of the server's Move (see [rules.Move.Due])
}

// DueTasks returns the tasks that are due at the time now, at most the given number. A member that is not an id would
// stay in `due` for ever, and take the place of a task in each page. So DueTasks removes the member.
func (s *Store) DueTasks(ctx context.Context, now task.Time, most int) (due []Due, err error) {
	found, err := conn.Ask(ctx, s.Conn, "read due tasks", func(r redis.Cmdable) *redis.ZSliceCmd {
		return r.ZRangeByScoreWithScores(ctx, s.Keys.Due(), &redis.ZRangeBy{
			Min: "-inf", Max: now.String(), Count: int64(most),
		})
	})
	for _, z := range found {
		member, _ := z.Member.(string)
		ids, err := s.Conn.SoundIDs(ctx, s.Keys.Due(), member)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			due = append(due, Due{ID: id, Score: rules.DueAt(z.Score)})
		}
	}
	return due, err
}

// NextDue returns the time at which the next task or the next check of held tasks becomes due, or Never, and the time
// now. A task that must be linked is due.
func (s *Store) NextDue(ctx context.Context) (next, now task.Time, err error) {
	var first, check, coming, link *redis.ZSliceCmd
	var clock *redis.TimeCmd
	err = s.Conn.Pipeline(ctx, "read when the next task is due", func(p redis.Pipeliner) {
		first, clock = p.ZRangeWithScores(ctx, s.Keys.Due(), 0, 0), p.Time(ctx)
		check = p.ZRangeWithScores(ctx, s.Keys.Held(), 0, 0)
		coming = p.ZRangeWithScores(ctx, s.Keys.Later(), 0, 0)
		link = p.ZRangeWithScores(ctx, s.Keys.Unlinked(), 0, 0)
	})
	if err != nil {
		return task.Never, 0, err
	}
	next = task.Never
	for _, due := range slices.Concat(first.Val(), check.Val(), coming.Val(), link.Val()) {
		next = min(next, task.Time(due.Score))
	}
	return next, task.At(clock.Val()), nil
}
