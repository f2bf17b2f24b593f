package redisstate

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

// FirstOpen returns the score of the first of the open tasks: when it might have been claimed; Never if
// there is none.
func (s *Store) FirstOpen(ctx context.Context) (tdf.Time, error) {
	first := tdf.Never
	err := s.persist(ctx, func(ctx context.Context) error {
		found, err := s.rdb.ZRangeWithScores(ctx, s.keys.List(tdf.Open), 0, 0).Result()
		if len(found) == 1 {
			first = tdf.Time(found[0].Score)
		}
		return err
	})
	if err != nil {
		return first, fmt.Errorf("reading the first open task: redis: %w", err)
	}
	return first, nil
}

// Between counts the tasks of some states whose scores lie in a span: those that came to be so then.
func (s *Store) Between(ctx context.Context, from, to tdf.Time, states ...tdf.State) (int64, error) {
	counts := make([]*redis.IntCmd, len(states))
	err := s.pipeline(ctx, func(p redis.Pipeliner) {
		for i, state := range states {
			counts[i] = p.ZCount(ctx, s.keys.List(state), from.String(), to.String())
		}
	})
	var n int64
	for _, c := range counts {
		n += c.Val()
	}
	return n, err
}

// MemoryOf returns the bytes that each of the tasks takes, with its name but without its places in lists; 0 where
// there is none, or where Redis cannot tell, as the embedded one.
func (s *Store) MemoryOf(ctx context.Context, ids []int64) ([]int64, error) {
	bytes := make([]int64, len(ids))
	for i, id := range ids {
		err := s.persist(ctx, func(ctx context.Context) (err error) {
			bytes[i], err = s.rdb.MemoryUsage(ctx, s.keys.Task(id), 0).Result()
			return err
		})
		switch {
		case err == redis.Nil:
		case err != nil && (strings.Contains(err.Error(), "unknown command") || strings.Contains(err.Error(), "syntax error")):
			return bytes, nil
		case err != nil:
			return nil, fmt.Errorf("asking for the memory of tasks: redis: %w", err)
		}
	}
	return bytes, nil
}

// SchemaOf returns the version of the layout that the namespace has.
func (s *Store) SchemaOf(ctx context.Context) (version string, err error) {
	err = s.persist(ctx, func(ctx context.Context) (err error) {
		version, err = s.rdb.Get(ctx, s.keys.schema()).Result()
		return err
	})
	return version, err
}
