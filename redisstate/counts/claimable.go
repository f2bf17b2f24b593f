package counts

import (
	"context"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/class"
)

// Claimable is a number of tasks with the same request that a worker may claim now.
type Claimable struct {
	Request class.Request // nil for tasks that ask for nothing
	Tasks   int
}

// Claimable counts the tasks that a worker with this offer may claim now, at most the given number. The cost grows with
// the number of partitions and priorities. While groups are paused, it also grows with the number of their tasks.
func (s *Counters) Claimable(ctx context.Context, o *class.Offer, paused tdf.Paused, now tdf.Time,
	most int,
) (found []Claimable, err error) {
	queues, held := paused.Withhold(o.Shares())
	if len(queues) == 0 {
		return nil, nil
	}
	places, err := s.placesFor(ctx, o, queues)
	if err != nil {
		return nil, err
	}
	for _, of := range places {
		n, err := s.dueIn(ctx, of.place, held, now, most)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			p, _ := class.ParseRequirement(of.partition)
			found = append(found, Claimable{p.Resources, n})
		}
		most -= n
		if most <= 0 {
			break
		}
	}
	return found, nil
}

// placesFor returns the places of open tasks that suit the offer, of some of its queues.
func (s *Counters) placesFor(ctx context.Context, o *class.Offer, queues []string) ([]queuePlace, error) {
	names, err := s.PartitionNames(ctx)
	if err != nil {
		return nil, err
	}
	var suiting []string
	for _, name := range names {
		p, ok := class.ParseRequirement(name)
		if ok && slices.Contains(queues, p.Queue) && class.Serves(o, p) {
			suiting = append(suiting, name)
		}
	}
	places, _, err := s.usedPlaces(ctx, suiting)
	if slices.Contains(suiting, class.Plain) {
		places = append(places, queuePlace{class.DefaultQueue, class.Plain, ""})
	}
	return places, err
}

// readAtOnce is how many tasks are read in one round trip, in order to leave out those of paused groups.
const readAtOnce = 1000

// dueIn counts the due tasks of a place that are in no paused group, at most the given number.
func (s *Counters) dueIn(ctx context.Context, place string, held []string, now tdf.Time, most int) (found int,
	err error,
) {
	key, until := s.Keys.Place(place), now.String()
	if len(held) == 0 {
		var n *redis.IntCmd
		err := s.Pipeline(ctx, "count the due tasks of a place", func(p redis.Pipeliner) {
			n = p.ZCount(ctx, key, "-inf", until)
		})
		if err != nil {
			return 0, err
		}
		return int(min(n.Val(), int64(most))), nil
	}
	for offset := int64(0); found < most; offset += readAtOnce {
		var ids *redis.StringSliceCmd
		err := s.Pipeline(ctx, "read the due tasks of a place", func(p redis.Pipeliner) {
			ids = p.ZRangeByScore(ctx, key, &redis.ZRangeBy{Min: "-inf", Max: until, Offset: offset, Count: readAtOnce})
		})
		if err != nil {
			return 0, err
		}
		n, err := s.outside(ctx, ids.Val(), held)
		if err != nil {
			return 0, err
		}
		found += n
		if len(ids.Val()) < readAtOnce {
			break
		}
	}
	return min(found, most), nil
}

// outside counts the tasks that are in none of these groups.
func (s *Counters) outside(ctx context.Context, ids, groups []string) (n int, err error) {
	var all []*redis.SliceCmd
	err = s.Pipeline(ctx, "read the groups of tasks", func(p redis.Pipeliner) {
		all = nil
		for _, text := range ids {
			id, err := strconv.ParseInt(text, 10, 64)
			if err == nil {
				all = append(all, p.HMGet(ctx, s.Keys.Task(id), "group"))
			}
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
