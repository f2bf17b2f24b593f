package index

import (
	"context"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// mostRequirements bounds the work of reading requirements. Redis remembers a few more than 11,000, unless another
// program has written them.
const mostRequirements = 20_000

// A Numbered is a requirement with its number in Redis. A later requirement has a higher number.
type Numbered struct {
	class.Requirement
	Known  bool // false for a name that this version cannot read; no worker of this version serves it
	Name   string
	Number int64
}

// Requirements returns the requirements that Redis knows with numbers above the given one, in the order of their
// numbers. Some of them may have no tasks.
func (s *Names) Requirements(ctx context.Context, after int64) (all []Numbered, err error) {
	found, err := conn.Ask(ctx, s.Conn, "read requirements", func(r redis.Cmdable) *redis.ZSliceCmd {
		return r.ZRangeByScoreWithScores(ctx, s.Conn.Keys.Requirements(), &redis.ZRangeBy{
			Min: "(" + strconv.FormatInt(after, 10), Max: "+inf", Count: mostRequirements,
		})
	})
	for _, z := range found {
		name, _ := z.Member.(string)
		r, known := class.ParseRequirement(name)
		all = append(all, Numbered{r, known, name, int64(z.Score)})
	}
	if conn.IsWrongType(err) {
		err = nil
	}
	return all, err
}

// Waiting returns the names of the requirements with due tasks, in alphabetical order.
func (s *Names) Waiting(ctx context.Context) (names []string, err error) {
	var plain *redis.IntCmd
	var first *redis.StringSliceCmd
	err = s.Conn.Pipeline(ctx, "read requirements with due tasks", func(p redis.Pipeliner) {
		plain, first = p.ZCard(ctx, s.Conn.Keys.List(task.Open)), p.HKeys(ctx, s.Conn.Keys.First())
	})
	if plain.Val() > 0 {
		names = []string{class.Plain}
	}
	for _, name := range first.Val() {
		if _, ok := class.ParseRequirement(name); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}
