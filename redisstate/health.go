package redisstate

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// Between counts the tasks that entered one of the given states between two times, and are still in that state.
func (s *Store) Between(ctx context.Context, from, to tdf.Time, states ...tdf.State) (int64, error) {
	var counts []*redis.IntCmd
	err := s.Pipeline(ctx, "count tasks by time", func(p redis.Pipeliner) {
		counts = nil
		for _, state := range states {
			for _, list := range tdf.ListsOf(state) {
				counts = append(counts, p.ZCount(ctx, s.Keys.List(list), from.String(), to.String()))
			}
		}
	})
	var n int64
	for _, c := range counts {
		n += c.Val()
	}
	return n, err
}

// MemoryOf returns how many bytes of memory each task takes, without its entries in lists. It returns 0 for a task that
// does not exist. It also returns 0 if Redis refuses the command MEMORY USAGE or does not support it. The embedded
// Redis does not support it.
func (s *Store) MemoryOf(ctx context.Context, ids []int64) ([]int64, error) {
	bytes, _, err := s.memory(ctx, ids)
	return bytes, err
}

// memory is like MemoryOf. If Redis does not report the sizes, known is false. For a task with very many properties,
// the size is an estimate, because an exact measurement would delay other clients of Redis.
func (s *Store) memory(ctx context.Context, ids []int64) (bytes []int64, known bool, err error) {
	replies, err := conn.AskEach(ctx, s.Conn, "measure the memory of tasks", ids,
		func(p redis.Pipeliner, id int64) *redis.IntCmd {
			return p.MemoryUsage(ctx, s.Keys.Task(id), smallHash) // measures this number of properties, or all
		})
	known = err == nil
	if err != nil && !conn.LacksRights(err) && !strings.Contains(err.Error(), "unknown command") &&
		!strings.Contains(err.Error(), "syntax error") {
		return nil, false, err
	}
	bytes = make([]int64, len(ids))
	for i, r := range replies {
		bytes[i] = r.Val()
	}
	return bytes, known, nil
}

// SchemaOf returns the layout version of the namespace.
func (s *Store) SchemaOf(ctx context.Context) (version string, err error) {
	return conn.Ask(ctx, s.Conn, "read the layout version", func(r redis.Cmdable) *redis.StringCmd {
		return r.Get(ctx, s.Keys.Schema())
	})
}

// Now returns the time by Redis's clock.
func (s *Store) Now(ctx context.Context) (tdf.Time, error) {
	now, err := conn.Ask(ctx, s.Conn, "read the clock", func(r redis.Cmdable) *redis.TimeCmd { return r.Time(ctx) })
	if err != nil {
		return 0, err
	}
	s.tally.see(tdf.At(now))
	return tdf.At(now), nil
}

// TryWrite makes a write that changes nothing. It returns an error if Redis refuses writes.
func (s *Store) TryWrite(ctx context.Context) error {
	return s.BestEffort(ctx, "try a write", func(p redis.Pipeliner) { p.ZRem(ctx, s.Keys.TokensUsed(), "") })
}
