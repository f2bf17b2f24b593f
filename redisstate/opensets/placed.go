// Package opensets reads the sets of open tasks, of which each requirement and each place has one (docs/redis.md,
// "Open tasks").
package opensets

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/limits"
)

// Sets are the sets of a namespace.
type Sets struct{ Conn *conn.Conn }

const readPlace = "read the open tasks of a place"

// First returns the ids of the first open tasks in a place of the TaskStore interface ([task.Properties.Place]) at one
// moment, in the order of their times. If now is not 0, it returns only tasks whose time has come.
func (s Sets) First(ctx context.Context, place string, now task.Time, most int64) ([]int64, error) {
	members, err := conn.Ask(ctx, s.Conn, readPlace, func(r redis.Cmdable) *redis.StringSliceCmd {
		return r.ZRangeByLex(ctx, s.Conn.Keys.OpenSet(place), &redis.ZRangeBy{Min: "-", Max: until(now), Count: most})
	})
	foreign := func(id int64) bool { return id == 0 }
	return slices.DeleteFunc(limits.IDsOf(members), foreign), err
}

// Any returns the id of a random task among those of a place whose time has come, or 0 if there is none. The cost
// does not depend on their number.
func (s Sets) Any(ctx context.Context, place string, now task.Time) (int64, error) {
	n, err := conn.Ask(ctx, s.Conn, readPlace, func(r redis.Cmdable) *redis.IntCmd {
		return r.ZLexCount(ctx, s.Conn.Keys.OpenSet(place), "-", until(now))
	})
	if err != nil || n == 0 {
		return 0, err
	}
	rank := rand.Int64N(n)
	members, err := conn.Ask(ctx, s.Conn, readPlace, func(r redis.Cmdable) *redis.StringSliceCmd {
		return r.ZRange(ctx, s.Conn.Keys.OpenSet(place), rank, rank)
	})
	if ids := limits.IDsOf(members); err == nil && len(ids) > 0 {
		return ids[0], nil
	}
	return 0, err
}

// HaveTasks reports for each of these places whether it has tasks.
func (s Sets) HaveTasks(ctx context.Context, places []string) ([]bool, error) {
	sizes, err := conn.AskEach(ctx, s.Conn, readPlace, places, func(p redis.Pipeliner, place string) *redis.IntCmd {
		return p.ZCard(ctx, s.Conn.Keys.OpenSet(place))
	})
	have := make([]bool, len(places))
	for i := range sizes {
		have[i] = sizes[i].Val() > 0
	}
	return have, err
}

// until returns the end of the members of tasks whose time has come. The colon comes after the digits of ids.
func until(now task.Time) string {
	if now == 0 {
		return "+"
	}
	return "(" + limits.Member(0, now, 0) + ":"
}
