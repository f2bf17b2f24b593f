package redisstate

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

// Partitions returns the names of the partitions with open tasks, in alphabetical order. It returns at most
// [tdf.MaxPartitions] names, besides the name of the default partition.
func (s *Store) Partitions(ctx context.Context) ([]string, error) {
	names, err := s.partitionNames(ctx)
	if err != nil {
		return nil, fmt.Errorf("read partitions: redis: %w", err)
	}
	tasks := make([][]*redis.IntCmd, len(names))
	err = s.pipeline(ctx, func(p redis.Pipeliner) {
		for i, name := range names {
			tasks[i] = []*redis.IntCmd{p.ZCard(ctx, s.keys.levels(name)), p.ZCard(ctx, s.keys.later(name))}
			if name == tdf.DefaultPartition {
				tasks[i] = append(tasks[i], p.ZCard(ctx, s.keys.List(tdf.Open)))
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("count the tasks of partitions: redis: %w", err)
	}
	var used []string
	for i, name := range names {
		if slices.ContainsFunc(tasks[i], func(n *redis.IntCmd) bool { return n.Val() > 0 }) {
			used = append(used, name)
		}
	}
	return used, nil
}

// mostPartitionPages is the largest number of pages of partitionNames. Other programs may have written a long hash.
const mostPartitionPages = 20

// partitionNames returns the names of the partitions that Redis knows, and the default partition. The names come in
// small pages, so that a long hash cannot make a reply long.
func (s *Store) partitionNames(ctx context.Context) ([]string, error) {
	names := map[string]bool{}
	for cursor, page := uint64(0), 0; page == 0 || cursor > 0 && page < mostPartitionPages && len(names) < tdf.MaxPartitions; page++ {
		err := s.untilAnswered(ctx, func(ctx context.Context) error {
			fields, next, err := s.rdb.HScan(ctx, s.keys.partitions(), cursor, "", 100).Result()
			for i := 0; i < len(fields); i += 2 {
				if _, ok := tdf.ParsePartition(fields[i]); ok && len(names) < tdf.MaxPartitions {
					names[fields[i]] = true
				}
			}
			cursor = next
			if err != nil && isWrongType(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	names[tdf.DefaultPartition] = true
	return slices.Sorted(maps.Keys(names)), nil
}
