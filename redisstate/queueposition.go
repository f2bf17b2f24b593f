package redisstate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A QueuePosition is the position of an open task among the open tasks with the same queue, tags and handler.
type QueuePosition struct {
	Listed bool     // whether the task is in the list of open tasks
	From   tdf.Time // the time from which the task may be claimed
	Ahead  int64    // the number of tasks before this task that have the same priority
	Higher int64    // the number of tasks with a higher priority that may be claimed now
	More   bool     // there are more priorities than Higher counts
}

// higherCounted is the largest number of priorities that QueuePosition counts.
const higherCounted = 100

// QueuePosition returns the position of an open task at the given time.
func (s *Store) QueuePosition(ctx context.Context, t *tdf.Task, now tdf.Time) (QueuePosition, error) {
	var score *redis.FloatCmd
	var rank *redis.IntCmd
	var levels *redis.StringSliceCmd
	member, list := strconv.FormatInt(t.ID, 10), s.Keys.Place(t.OpenPlace())
	err := s.Pipeline(ctx, fmt.Sprintf("find task %d in the queue", t.ID), func(p redis.Pipeliner) {
		score, rank = p.ZScore(ctx, list, member), p.ZRank(ctx, list, member)
		levels = p.ZRevRangeByScore(ctx, s.Keys.Levels(t.OpenPart()), &redis.ZRangeBy{
			Min: "(" + strconv.Itoa(t.Priority), Max: "+inf", Count: higherCounted + 1,
		})
	})
	if err != nil {
		return QueuePosition{}, err
	}
	q := QueuePosition{Listed: score.Err() == nil, From: tdf.Time(score.Val()), Ahead: rank.Val()}
	if q.Listed && len(levels.Val()) > 0 {
		q.Higher, err = s.countHigher(ctx, t, levels.Val(), now)
		q.More = len(levels.Val()) > higherCounted
	}
	return q, err
}

// countHigher counts the tasks with the given priorities that may be claimed now.
func (s *Store) countHigher(ctx context.Context, t *tdf.Task, priorities []string, now tdf.Time) (n int64, err error) {
	var counts []*redis.IntCmd
	err = s.Pipeline(ctx, fmt.Sprintf("count the tasks before task %d", t.ID), func(p redis.Pipeliner) {
		counts = nil
		for _, text := range priorities[:min(len(priorities), higherCounted)] {
			higher := *t
			if n, err := strconv.Atoi(text); err == nil {
				higher.Priority = n
				counts = append(counts, p.ZCount(ctx, s.Keys.Place(higher.OpenPlace()), "-inf", now.String()))
			}
		}
	})
	for _, count := range counts {
		n += count.Val()
	}
	return n, err
}

// Bounds of AheadIn.
const (
	partitionsCounted = 100
	levelsCounted     = 20 // of a partition
)

// AheadIn adds the tasks of other partitions to a position: those that workers claim before the task if they serve
// these partitions, too.
func (s *Store) AheadIn(
	ctx context.Context, q *QueuePosition, t *tdf.Task, partitions []string, now tdf.Time,
) error {
	if q.More = q.More || len(partitions) > partitionsCounted; len(partitions) > partitionsCounted {
		partitions = partitions[:partitionsCounted]
	}
	doing := fmt.Sprintf("count the tasks before task %d", t.ID)
	levels, err := conn.AskEach(ctx, s.Conn, doing, partitions, func(
		p redis.Pipeliner, partition string,
	) *redis.StringSliceCmd {
		return p.ZRevRangeByScore(ctx, s.Keys.Levels(partition), &redis.ZRangeBy{
			Min: "(" + strconv.Itoa(t.Priority), Max: "+inf", Count: levelsCounted,
		})
	})
	if err != nil {
		return err
	}
	places := map[string]string{} // and the greatest score of the tasks that count
	for i, partition := range partitions {
		for _, text := range levels[i].Val() {
			if priority, err := strconv.Atoi(text); err == nil {
				places[tdf.PlaceIn(partition, priority)] = now.String()
			}
		}
		places[tdf.PlaceIn(partition, t.Priority)] = "(" + min(q.From, now).String()
		switch { // the tasks without a place have the priority 0
		case partition == class.Plain && t.Priority == 0:
			places[""] = places[partition]
		case partition == class.Plain && t.Priority < 0:
			places[""] = now.String()
		}
	}
	delete(places, t.OpenPlace())
	names := slices.Sorted(maps.Keys(places))
	counts, err := conn.AskEach(ctx, s.Conn, doing, names, func(p redis.Pipeliner, place string) *redis.IntCmd {
		return p.ZCount(ctx, s.Keys.Place(place), "-inf", places[place])
	})
	for i, place := range names {
		if places[place] == now.String() {
			q.Higher += counts[i].Val()
		} else {
			q.Ahead += counts[i].Val()
		}
	}
	return err
}
