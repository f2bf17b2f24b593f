package opensets

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/limits"
)

// A Position is the position of an open task among the due tasks of its queue.
type Position struct {
	Listed bool      // whether the task is in the lists of open tasks
	From   task.Time // the time from which the task may be claimed
	Ahead  int64     // the number of due tasks before this task that have the same priority
	Higher int64     // the number of due tasks with a higher priority
}

// PositionOf returns the position of an open task among the tasks of its own set.
func (s Sets) PositionOf(ctx context.Context, t *task.Task) (q Position, err error) {
	list := rules.Placed
	if t.OpenPlace() == "" {
		list = task.Open
	}
	var score *redis.FloatCmd
	err = s.Conn.Pipeline(ctx, fmt.Sprintf("find task %d in the queue", t.ID), func(p redis.Pipeliner) {
		score = p.ZScore(ctx, s.Conn.Keys.List(list), fmt.Sprint(t.ID))
	})
	q.Listed, q.From = err == nil && score.Err() == nil, task.Time(score.Val())
	if q.Listed {
		err = s.AheadIn(ctx, &q, t, []string{t.OpenSet()})
	}
	return q, err
}

// setsCounted bounds the work of AheadIn.
const setsCounted = 1000

// AheadIn adds the tasks of sets to a position: those that workers claim before the task. The set [class.Plain]
// includes the list of the tasks without a place.
func (s Sets) AheadIn(ctx context.Context, q *Position, t *task.Task, sets []string) error {
	first, own := limits.Member(t.Priority, 0, 0), limits.Member(t.Priority, q.From, t.ID)
	var higher, ahead []*redis.IntCmd
	var plain *redis.IntCmd
	err := s.Conn.Pipeline(ctx, fmt.Sprintf("count the tasks before task %d", t.ID), func(p redis.Pipeliner) {
		higher, ahead, plain = nil, nil, nil
		for _, name := range sets[:min(len(sets), setsCounted)] {
			if name == class.Plain {
				until := "(" + q.From.String()
				if t.Priority < 0 {
					until = "+inf"
				}
				if t.Priority <= 0 {
					plain = p.ZCount(ctx, s.Conn.Keys.List(task.Open), "-inf", until)
				}
			}
			higher = append(higher, p.ZLexCount(ctx, s.Conn.Keys.OpenSet(name), "-", "("+first))
			ahead = append(ahead, p.ZLexCount(ctx, s.Conn.Keys.OpenSet(name), "["+first, "("+own))
		}
	})
	for i := range higher {
		q.Higher += higher[i].Val()
		q.Ahead += ahead[i].Val()
	}
	switch {
	case plain == nil:
	case t.Priority < 0:
		q.Higher += plain.Val()
	default:
		q.Ahead += plain.Val()
	}
	return err
}
