package redisstate

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

// A QueuePosition is what Redis says about an open task, beside the task itself.
type QueuePosition struct {
	Listed bool     // it is in the list of open tasks
	From   tdf.Time // may it be claimed
	Ahead  int64    // so many are before it in the list
}

// QueuePosition looks up an open task's place in the queue.
func (s *Store) QueuePosition(ctx context.Context, id int64) (QueuePosition, error) {
	var score *redis.FloatCmd
	var rank *redis.IntCmd
	member, list := strconv.FormatInt(id, 10), s.keys.List(tdf.Open)
	err := s.pipeline(ctx, func(p redis.Pipeliner) {
		score, rank = p.ZScore(ctx, list, member), p.ZRank(ctx, list, member)
	})
	if err != nil {
		return QueuePosition{}, fmt.Errorf("looking up task %d: redis: %w", id, err)
	}
	return QueuePosition{Listed: score.Err() == nil, From: tdf.Time(score.Val()), Ahead: rank.Val()}, nil
}

// HasProgram says whether an archive of that SHA-256 is stored in the namespace.
func (s *Store) HasProgram(ctx context.Context, sha256 string) (bool, error) {
	var n int64
	err := s.untilAnswered(ctx, func(ctx context.Context) (err error) {
		n, err = s.rdb.Exists(ctx, s.keys.program(sha256)).Result()
		return err
	})
	if err != nil {
		return false, fmt.Errorf("looking for a program: redis: %w", err)
	}
	return n > 0, nil
}

// Full says whether Redis has reached its maxmemory, so that nothing is claimed and nothing opened.
func (s *Store) Full(ctx context.Context) (bool, error) {
	info, err := s.Info(ctx, "memory")
	most, _ := strconv.ParseInt(info["maxmemory"], 10, 64)
	used, _ := strconv.ParseInt(info["used_memory"], 10, 64)
	return most > 0 && used >= most, err
}
