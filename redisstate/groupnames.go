package redisstate

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// The set of the names of all groups is a sorted set whose scores are all 0, so that Redis orders it by name. It has the
// groups with an index: the scripts that open a group's first task or remove its last one change it, too.

// A GroupCount is a group, and the number of its tasks in each state.
type GroupCount struct {
	Name string
	Mark
	Counts tdf.Counts
}

// MaxGroups is the largest number of groups that one call of Groups reads.
const MaxGroups = 1000

const readGroups = "list groups"

// Groups returns the first groups after a name, in the order of the bytes of their names: at most the given number of groups,
// and only those whose names begin with the prefix. It returns fewer groups if some of them were just removed. The name
// next, if it is not empty, continues the list. The counts of different groups are of different moments.
func (s *Store) Groups(ctx context.Context, prefix, after string, most int) (groups []GroupCount, next string, err error) {
	most = min(max(most, 1), MaxGroups)
	names, err := s.groupNames(ctx, prefix, after, most)
	if err != nil || len(names) == 0 {
		return nil, "", err
	}
	if len(names) == most {
		next = names[len(names)-1]
	}
	marks := make([]*redis.StringCmd, len(names))
	counts := make([][]*redis.IntCmd, len(names))
	err = s.Pipeline(ctx, readGroups, func(p redis.Pipeliner) {
		for i, name := range names {
			marks[i] = p.HGet(ctx, s.Keys.Groups(), name)
			for _, state := range tdf.States {
				first, last := groupRange(state)
				counts[i] = append(counts[i], p.ZCount(ctx, s.Keys.Group(name), first, last))
			}
		}
	})
	if err != nil {
		return nil, "", err
	}
	for i, name := range names {
		g := GroupCount{name, parseMark(marks[i].Val()), tdf.Counts{}}
		for j, state := range tdf.States {
			g.Counts[state] = counts[i][j].Val()
		}
		if g.Counts.Total() > 0 {
			groups = append(groups, g)
		}
	}
	return groups, next, nil
}

func (s *Store) groupNames(ctx context.Context, prefix, after string, most int) ([]string, error) {
	from, to := "["+prefix, afterAll(prefix)
	if after >= prefix && after != "" {
		from = "(" + after
	}
	return conn.Ask(ctx, s.Conn, readGroups, func(r redis.Cmdable) *redis.StringSliceCmd {
		return r.ZRangeByLex(ctx, s.Keys.GroupNames(), &redis.ZRangeBy{Min: from, Max: to, Count: int64(most)})
	})
}

// afterAll returns the end, for ZRANGEBYLEX, of all names that begin with a prefix.
func afterAll(prefix string) string {
	last := prefix
	for strings.HasSuffix(last, "\xff") {
		last = last[:len(last)-1]
	}
	if last == "" {
		return "+"
	}
	return "(" + last[:len(last)-1] + string([]byte{last[len(last)-1] + 1})
}

// namesChecked is the number of names that one call of KeepGroupNames checks.
const namesChecked = 500

// KeepGroupNames adds the groups that a page of [Store.DanglingIDs] has found to the set of the names of all groups. It also
// checks some names of the set, and removes those without tasks. It returns the page with which the walk continues.
func (s *Store) KeepGroupNames(ctx context.Context, page GroupPage) (GroupPage, error) {
	e := &conn.Args{}
	e.Add(s.Keys.GroupPrefix(), page.named)
	e.Count(namesChecked)
	e.Strings(page.found)
	reply, err := s.Run(ctx, "check the names of groups", lua.GroupNames, []string{s.Keys.GroupNames()}, e.All, conn.IsText)
	if err == nil {
		page.named, page.found = conn.Text(reply), nil
	}
	return page, err
}
