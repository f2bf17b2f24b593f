package redisstate

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

// A QueuePosition is the position of an open task in the list of open tasks.
type QueuePosition struct {
	Listed bool     // whether the task is in the list of open tasks
	From   tdf.Time // the time from which the task may be claimed
	Ahead  int64    // the number of tasks before this task in the list; for a task with a place, in its place
}

// QueuePosition returns the position of an open task in the list of open tasks, or in its place ([tdf.Properties.Place]).
func (s *Store) QueuePosition(ctx context.Context, id int64, place string) (QueuePosition, error) {
	var score *redis.FloatCmd
	var rank *redis.IntCmd
	member, list := strconv.FormatInt(id, 10), s.keys.place(place)
	err := s.pipeline(ctx, func(p redis.Pipeliner) {
		score, rank = p.ZScore(ctx, list, member), p.ZRank(ctx, list, member)
	})
	if err != nil {
		return QueuePosition{}, fmt.Errorf("find task %d in the queue: redis: %w", id, err)
	}
	return QueuePosition{Listed: score.Err() == nil, From: tdf.Time(score.Val()), Ahead: rank.Val()}, nil
}

// HasProgram reports whether the namespace stores a program's archive with this SHA-256.
func (s *Store) HasProgram(ctx context.Context, sha256 string) (bool, error) {
	var n int64
	err := s.untilAnswered(ctx, func(ctx context.Context) (err error) {
		n, err = s.rdb.Exists(ctx, s.keys.program(sha256)).Result()
		return err
	})
	if err != nil {
		return false, fmt.Errorf("find stored program: redis: %w", err)
	}
	return n > 0, nil
}

// Full reports whether Redis uses so much of its maxmemory that claims wait.
func (s *Store) Full(ctx context.Context) (bool, error) {
	settings, _, m, err := s.Room(ctx)
	return settings.ClaimsWait(m), err
}
