package conn

import (
	"context"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// IDsOf returns the ids among the members of a list. It skips members that another program has added.
func IDsOf(members []string) []int64 {
	ids := make([]int64, 0, len(members))
	for _, m := range members {
		if id, err := strconv.ParseInt(m, 10, 64); err == nil && strconv.FormatInt(id, 10) == m {
			ids = append(ids, id)
		}
	}
	return ids
}

// SoundIDs returns the ids among the members of a sorted set, and removes the other members, which another program has written.
func (s *Conn) SoundIDs(ctx context.Context, key string, members ...string) ([]int64, error) {
	ids := IDsOf(members)
	if len(ids) == len(members) {
		return ids, nil
	}
	return ids, s.BestEffort(ctx, "remove invalid entries of "+key, func(p redis.Pipeliner) {
		for _, m := range members {
			if len(IDsOf([]string{m})) == 0 {
				p.ZRem(ctx, key, m)
			}
		}
	})
}

// Unique sorts ids and removes duplicates.
func Unique(ids []int64) []int64 {
	slices.Sort(ids)
	return slices.Compact(ids)
}
