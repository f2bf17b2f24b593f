package redisstate

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

// A Due task is one that the server must look at now.
type Due struct {
	ID    int64
	Score string // the fence of what is decided: see [tdf.Move.Due]
}

// Due returns up to most tasks that are due at now, the longest due first.
func (s *Store) Due(ctx context.Context, now tdf.Time, most int64) ([]Due, error) {
	var found []redis.Z
	err := s.persist(ctx, func(ctx context.Context) error {
		var err error
		found, err = s.rdb.ZRangeByScoreWithScores(ctx, s.keys.Due(),
			&redis.ZRangeBy{Min: "-inf", Max: now.String(), Count: most}).Result()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading what is due: redis: %w", err)
	}
	var due []Due
	for _, z := range found {
		member, _ := z.Member.(string)
		for _, id := range idsOf([]string{member}) {
			due = append(due, Due{ID: id, Score: dueScore(z.Score)})
		}
	}
	return due, nil
}

// NextDue returns when the next task becomes due; Never if none is known.
func (s *Store) NextDue(ctx context.Context) (tdf.Time, error) {
	next := tdf.Never
	err := s.persist(ctx, func(ctx context.Context) error {
		first, err := s.rdb.ZRangeWithScores(ctx, s.keys.Due(), 0, 0).Result()
		if len(first) == 1 {
			next = tdf.Time(first[0].Score)
		}
		return err
	})
	return next, err
}

// Overlooked returns tasks among the newest of each list that nothing in `due` will make
// the server look at as soon as it should: what components of the original TDF moved.
func (s *Store) Overlooked(ctx context.Context, now tdf.Time, most int64) ([]int64, error) {
	lists := []tdf.State{tdf.Running, tdf.Executed, tdf.LegacyTimeout, tdf.LegacyFailure}
	newest := make([]*redis.StringSliceCmd, len(lists))
	err := s.pipeline(ctx, func(p redis.Pipeliner) {
		for i, list := range lists {
			newest[i] = p.ZRevRange(ctx, s.keys.List(list), 0, most-1)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading the newest tasks: redis: %w", err)
	}
	var overlooked []int64
	for i, list := range lists {
		found, err := s.undue(ctx, list, idsOf(newest[i].Val()), now)
		if err != nil {
			return nil, err
		}
		overlooked = append(overlooked, found...)
	}
	return unique(overlooked), nil
}

func (s *Store) undue(ctx context.Context, list tdf.State, ids []int64, now tdf.Time) ([]int64, error) {
	if list == tdf.LegacyTimeout || list == tdf.LegacyFailure {
		return ids, nil
	}
	scores := make([]*redis.FloatCmd, len(ids))
	err := s.pipeline(ctx, func(p redis.Pipeliner) {
		for i, id := range ids {
			scores[i] = p.ZScore(ctx, s.keys.Due(), strconv.FormatInt(id, 10))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("looking up what is due: redis: %w", err)
	}
	var undue []int64
	for i, id := range ids {
		if scores[i].Err() == redis.Nil || list == tdf.Executed && tdf.Time(scores[i].Val()) > now.Add(1) {
			undue = append(undue, id)
		}
	}
	return undue, nil
}
