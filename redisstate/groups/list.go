package groups

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/index"
)

// A Group is a group, and the number of its tasks in each state.
type Group struct {
	Name string
	Mark
	Counts task.Counts
}

// MaxListed is the largest number of groups that one call of ListGroups reads.
const MaxListed = 1000

const readGroups = "list groups"

// ListGroups returns the first groups after a name, in the order of the bytes of their names: at most the given number
// of groups, and only those whose names begin with the prefix. It returns fewer groups if some of them were just
// removed. The name next, if it is not empty, continues the list. The counts of different groups are of different
// moments.
func (g Groups) ListGroups(ctx context.Context, prefix, after string, most int) (all []Group, next string, err error) {
	most = min(max(most, 1), MaxListed)
	names, err := (&index.Names{Conn: g.Conn}).NamesAfter(ctx, readGroups, g.Conn.Keys.GroupNames(), prefix, after, most)
	if err != nil || len(names) == 0 {
		return nil, "", err
	}
	if len(names) == most {
		next = names[len(names)-1]
	}
	marks := make([]*redis.StringCmd, len(names))
	counts := make([]index.ReadCounts, len(names))
	err = g.Conn.Pipeline(ctx, readGroups, func(p redis.Pipeliner) {
		for i, name := range names {
			marks[i] = p.HGet(ctx, g.Conn.Keys.Groups(), name)
			counts[i] = index.CountIn(ctx, p, g.Conn.Keys.Group(name))
		}
	})
	if err != nil {
		return nil, "", err
	}
	for i, name := range names {
		one := Group{name, parseMark(marks[i].Val()), counts[i].Counts()}
		if one.Counts.Total() > 0 {
			all = append(all, one)
		}
	}
	return all, next, nil
}
