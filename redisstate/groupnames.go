package redisstate

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/index"
)

// A GroupCount is a group, and the number of its tasks in each state.
type GroupCount struct {
	Name string
	Mark
	Counts task.Counts
}

// MaxGroups is the largest number of groups that one call of Groups reads.
const MaxGroups = 1000

const readGroups = "list groups"

// Groups returns the first groups after a name, in the order of the bytes of their names: at most the given number of
// groups, and only those whose names begin with the prefix. It returns fewer groups if some of them were just removed.
// The name next, if it is not empty, continues the list. The counts of different groups are of different moments.
func (s *Store) Groups(ctx context.Context, prefix, after string, most int) (groups []GroupCount, next string,
	err error,
) {
	most = min(max(most, 1), MaxGroups)
	names, err := s.Counters.NamesAfter(ctx, readGroups, s.Keys.GroupNames(), prefix, after, most)
	if err != nil || len(names) == 0 {
		return nil, "", err
	}
	if len(names) == most {
		next = names[len(names)-1]
	}
	marks := make([]*redis.StringCmd, len(names))
	counts := make([]index.ReadCounts, len(names))
	err = s.Conn.Pipeline(ctx, readGroups, func(p redis.Pipeliner) {
		for i, name := range names {
			marks[i] = p.HGet(ctx, s.Keys.Groups(), name)
			counts[i] = index.CountIn(ctx, p, s.Keys.Group(name))
		}
	})
	if err != nil {
		return nil, "", err
	}
	for i, name := range names {
		g := GroupCount{name, parseMark(marks[i].Val()), counts[i].Counts()}
		if g.Counts.Total() > 0 {
			groups = append(groups, g)
		}
	}
	return groups, next, nil
}
