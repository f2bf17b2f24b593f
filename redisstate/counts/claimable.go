package counts

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/limits"
)

// Claimable is a number of tasks with the same request that a worker may claim now.
type Claimable struct {
	Request class.Request // nil for tasks that ask for nothing
	Tasks   int
}

// Claimable counts the due tasks that a worker with this offer may claim now, at most the given number. The cost grows
// with the number of requirements. While groups are paused, it also grows with the number of tasks, and for a worker
// for one group with the number of its tasks.
func (s *Counters) Claimable(ctx context.Context, o *class.Offer, paused task.Paused, now task.Time,
	most int,
) (found []Claimable, err error) {
	queues, held := paused.Withhold(o.Shares())
	switch {
	case len(queues) == 0 || o.Group != "" && slices.Contains(held, o.Group):
		return nil, nil
	case o.Group != "":
		return s.claimableOf(ctx, o, queues, most)
	}
	sets, err := s.setsFor(ctx, o, queues)
	if err != nil {
		return nil, err
	}
	for _, name := range sets {
		n, err := s.dueIn(ctx, name, held, now, most)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			p, _ := class.ParseRequirement(name)
			found = append(found, Claimable{p.Resources, n})
		}
		most -= n
		if most <= 0 {
			break
		}
	}
	return found, nil
}

// claimableOf counts the due tasks of the offer's group, of some queues. Their set has those of all requirements.
func (s *Counters) claimableOf(ctx context.Context, o *class.Offer, queues []string, most int) (found []Claimable,
	err error,
) {
	for offset := int64(0); most > 0; offset += readAtOnce {
		members, err := conn.Ask(ctx, s.Conn, "read due tasks", func(r redis.Cmdable) *redis.StringSliceCmd {
			return r.ZRange(ctx, s.Conn.Keys.OpenSet(class.GroupSet(o.Group)), offset, offset+readAtOnce-1)
		})
		if err != nil || len(members) == 0 {
			return found, err
		}
		names, err := s.requirementsOf(ctx, limits.IDsOf(members))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			p, known := class.ParseRequirement(name)
			if p.Group = o.Group; most > 0 && known && slices.Contains(queues, p.Queue) && class.Serves(o, p) {
				found = append(found, Claimable{p.Resources, 1})
				most--
			}
		}
	}
	return found, nil
}

// setsFor returns the names of the sets of due tasks that suit the offer, of some of its queues. The name "" is that of
// the list of the tasks without a place.
func (s *Counters) setsFor(ctx context.Context, o *class.Offer, queues []string) (sets []string, err error) {
	names, err := s.Waiting(ctx)
	for _, name := range names {
		p, _ := class.ParseRequirement(name)
		if !slices.Contains(queues, p.Queue) || !class.Serves(o, p) {
			continue
		}
		if sets = append(sets, name); name == class.Plain {
			sets = append(sets, "")
		}
	}
	return sets, err
}

// readAtOnce is how many tasks are read in one round trip, in order to leave out those of paused groups.
const readAtOnce = 1000

// dueIn counts the due tasks of a set that are in no paused group, at most the given number.
func (s *Counters) dueIn(ctx context.Context, name string, held []string, now task.Time, most int) (found int,
	err error,
) {
	key, until := s.Conn.Keys.OpenSet(name), now.String()
	if len(held) == 0 {
		n, err := conn.Ask(ctx, s.Conn, "count due tasks", func(r redis.Cmdable) *redis.IntCmd {
			if name == "" {
				return r.ZCount(ctx, key, "-inf", until)
			}
			return r.ZCard(ctx, key)
		})
		return int(min(n, int64(most))), err
	}
	for offset := int64(0); found < most; offset += readAtOnce {
		members, err := conn.Ask(ctx, s.Conn, "read due tasks", func(r redis.Cmdable) *redis.StringSliceCmd {
			if name == "" {
				return r.ZRangeByScore(ctx, key, &redis.ZRangeBy{Min: "-inf", Max: until, Offset: offset, Count: readAtOnce})
			}
			return r.ZRange(ctx, key, offset, offset+readAtOnce-1)
		})
		if err != nil {
			return 0, err
		}
		ids := conn.IDsOf(members)
		if name != "" {
			ids = limits.IDsOf(members)
		}
		n, err := s.outside(ctx, ids, held)
		if err != nil {
			return 0, err
		}
		found += n
		if len(members) < readAtOnce {
			break
		}
	}
	return min(found, most), nil
}

// outside counts the tasks that are in none of these groups.
func (s *Counters) outside(ctx context.Context, ids []int64, groups []string) (n int, err error) {
	var all []*redis.SliceCmd
	err = s.Conn.Pipeline(ctx, "read the groups of tasks", func(p redis.Pipeliner) {
		all = nil
		for _, id := range ids {
			all = append(all, p.HMGet(ctx, s.Conn.Keys.Task(id), "group"))
		}
	})
	if err != nil {
		return 0, err
	}
	for _, of := range all {
		group, _ := of.Val()[0].(string) // nil for a task without a group
		if !slices.Contains(groups, group) {
			n++
		}
	}
	return n, nil
}
