package redisstate

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

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
	if err != nil {
		return 0, fmt.Errorf("counting tasks by time: redis: %w", err)
	}
	return n, nil
}

// MemoryOf returns the bytes that each of the tasks takes, with its name but without its places in lists; 0 where
// there is none, or where Redis cannot tell, as the embedded one, or may not tell this user.
func (s *Store) MemoryOf(ctx context.Context, ids []int64) ([]int64, error) {
	counts, err := s.fieldCounts(ctx, ids)
	if err != nil {
		return nil, err
	}
	bytes, _, err := s.memory(ctx, ids, counts)
	return bytes, err
}

// memory also says whether Redis has told it. Of tasks with so many properties it is an estimate: Redis would go through
// all of them, and do nothing else meanwhile.
func (s *Store) memory(ctx context.Context, ids, counts []int64) (bytes []int64, told bool, err error) {
	replies := make([]*redis.IntCmd, len(ids))
	err = s.pipeline(ctx, func(p redis.Pipeliner) {
		for i, id := range ids {
			samples := 0 // all
			if counts[i] > smallHash {
				samples = smallHash
			}
			replies[i] = p.MemoryUsage(ctx, s.keys.Task(id), samples)
		}
	})
	told = err == nil
	if err != nil && (lacksRights(err) || strings.Contains(err.Error(), "unknown command") || strings.Contains(err.Error(), "syntax error")) {
		err = nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("asking for the memory of tasks: redis: %w", err)
	}
	bytes = make([]int64, len(ids))
	for i, r := range replies {
		bytes[i] = r.Val()
	}
	return bytes, told, nil
}

// SchemaOf returns the version of the layout that the namespace has.
func (s *Store) SchemaOf(ctx context.Context) (version string, err error) {
	err = s.untilAnswered(ctx, func(ctx context.Context) (err error) {
		version, err = s.rdb.Get(ctx, s.keys.schema()).Result()
		return err
	})
	return version, err
}

// Now returns the time by Redis's clock.
func (s *Store) Now(ctx context.Context) (tdf.Time, error) {
	var now tdf.Time
	err := s.untilAnswered(ctx, func(ctx context.Context) error {
		t, err := s.rdb.Time(ctx).Result()
		now = tdf.At(t)
		return err
	})
	return now, err
}
