package index

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/class"
)

// These constants bound the work of listing partitions. The cost of a claim does not depend on their number.
const (
	PartitionsListed  = 10_000
	PartitionsPerPage = 1000
)

// Partitions returns the names of the partitions with open tasks, in alphabetical order: at most 10,000 of them.
func (s *Names) Partitions(ctx context.Context) ([]string, error) {
	names, err := s.PartitionNames(ctx)
	if err != nil {
		return nil, err
	}
	var used []string
	for page := range slices.Chunk(names, PartitionsPerPage) {
		tasks := make([][]*redis.IntCmd, len(page))
		err = s.Pipeline(ctx, "count the tasks of partitions", func(p redis.Pipeliner) {
			for i, name := range page {
				tasks[i] = []*redis.IntCmd{p.ZCard(ctx, s.Keys.Levels(name)), p.ZCard(ctx, s.Keys.Later(name))}
				if name == class.Plain {
					tasks[i] = append(tasks[i], p.ZCard(ctx, s.Keys.List(tdf.Open)))
				}
			}
		})
		if err != nil {
			return nil, err
		}
		for i, name := range page {
			if slices.ContainsFunc(tasks[i], func(n *redis.IntCmd) bool { return n.Val() > 0 }) {
				used = append(used, name)
			}
		}
	}
	return used, nil
}

// PartitionNames returns the names of the partitions that Redis knows, and the default partition. Some of them may have
// no tasks.
func (s *Names) PartitionNames(ctx context.Context) (names []string, err error) {
	names = []string{class.Plain}
	err = s.EachPartition(ctx, func(name string, _ class.Requirement) bool {
		names = append(names, name)
		return len(names) <= PartitionsListed
	})
	slices.Sort(names)
	return slices.Compact(names), err
}

// EachPartition passes the names of partitions to a function, until it returns false. The hash may be one that another
// program has written, so EachPartition reads a limited number of its fields.
func (s *Names) EachPartition(ctx context.Context, f func(name string, p class.Requirement) bool) error {
	left := 2 * PartitionsListed
	return s.EachField(ctx, "read partitions", s.Keys.Partitions(), func(name, _ string) bool {
		left--
		p, ok := class.ParseRequirement(name)
		return (!ok || f(name, p)) && left > 0
	})
}
