package redisstate

import (
	"context"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// idsOf returns the ids among the members of a list. It skips members that another program has added.
func idsOf(members []string) []int64 {
	ids := make([]int64, 0, len(members))
	for _, m := range members {
		if id, err := strconv.ParseInt(m, 10, 64); err == nil && strconv.FormatInt(id, 10) == m {
			ids = append(ids, id)
		}
	}
	return ids
}

// soundIDs returns the ids among the members of a sorted set, and removes the other members, which another program has written.
func (s *Store) soundIDs(ctx context.Context, key string, members ...string) ([]int64, error) {
	ids := idsOf(members)
	if len(ids) == len(members) {
		return ids, nil
	}
	return ids, s.bestEffort(ctx, "remove invalid entries of "+key, func(p redis.Pipeliner) {
		for _, m := range members {
			if len(idsOf([]string{m})) == 0 {
				p.ZRem(ctx, key, m)
			}
		}
	})
}

// unique sorts ids and removes duplicates.
func unique(ids []int64) []int64 {
	slices.Sort(ids)
	return slices.Compact(ids)
}
