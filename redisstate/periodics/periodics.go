// Package periodics keeps the records of periodic tasks, and opens their tasks (docs/periodic.md).
package periodics

import (
	"cmp"
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
)

// Periodics are those of a namespace.
type Periodics struct{ s *redisstate.Store }

// Of returns the periodics of a store's namespace.
func Of(s *redisstate.Store) Periodics { return Periodics{s} }

// PeriodicTexts returns the texts of all records of periodic tasks.
func (p Periodics) PeriodicTexts(ctx context.Context) (task.Hash, error) {
	all := task.Hash{}
	err := p.s.Conn.EachField(ctx, "read periodics", p.s.Keys.Periodic(), func(name, text string) bool {
		all[name] = text
		return true
	})
	return all, err
}

// PeriodicText returns the text of a record, or "" if there is none.
func (p Periodics) PeriodicText(ctx context.Context, name string) (string, error) {
	return conn.Ask(ctx, p.s.Conn, "read a periodic", func(r redis.Cmdable) *redis.StringCmd {
		return r.HGet(ctx, p.s.Keys.Periodic(), name)
	})
}

// CountPeriodics returns the number of records.
func (p Periodics) CountPeriodics(ctx context.Context) (int, error) {
	n, err := conn.Ask(ctx, p.s.Conn, "count periodics", func(r redis.Cmdable) *redis.IntCmd {
		return r.HLen(ctx, p.s.Keys.Periodic())
	})
	return int(n), err
}

// ChangePeriodic changes the text of a record and opens tasks, in one step, which also puts the ids of the tasks before
// those in the record. It returns the ids of the tasks. If the record has another text than from, nothing changes, and
// the error is [redisstate.ErrRecordChanged]. If Redis uses too much memory for new tasks, it does not wait, but
// returns [redisstate.ErrNoRoom].
func (p Periodics) ChangePeriodic(
	ctx context.Context, who, name, from, to string, open ...task.Properties,
) ([]int64, error) {
	if err := p.CheckOneStep(ctx, open); err != nil {
		return nil, err
	}
	outcomes, err := p.s.Apply(ctx, who, redisstate.Unit{
		Open: open, Periodic: &redisstate.PeriodicChange{Name: name, From: from, To: to},
	})
	if len(outcomes) == 0 {
		return nil, err
	}
	return outcomes[0].IDs, cmp.Or(outcomes[0].RefusedWith(redisstate.ErrRecordChanged), err)
}

// RemovePeriodic removes a record.
func (p Periodics) RemovePeriodic(ctx context.Context, name string) error {
	return p.s.Conn.Write(ctx, "remove a periodic", func(r redis.Pipeliner) { r.HDel(ctx, p.s.Keys.Periodic(), name) })
}

// CheckOneStep returns an error if one step cannot open the tasks.
func (p Periodics) CheckOneStep(ctx context.Context, all []task.Properties) error {
	if err := task.ValidateAll(all); err != nil {
		return err
	}
	if len(all) > 0 && redisstate.OpenBatch(all) < len(all) {
		return task.NewError(task.CodeInvalid, fmt.Sprintf("%d tasks are too many to open at once", len(all)))
	}
	if _, err := task.InOrder(all); err != nil {
		return err
	}
	if err := dependencies.Check(ctx, p.s, all); err != nil {
		return err
	}
	if err := task.CheckNoBlobs(all, "tasks of a periodic"); err != nil {
		return err
	}
	if err := p.s.CheckNamed(ctx, all); err != nil {
		return err
	}
	return p.s.Programs.NameDefinitions(ctx, all)
}

// UnfinishedOf returns those of the ids whose tasks exist and are not finished.
func (p Periodics) UnfinishedOf(ctx context.Context, ids []int64) (unfinished []int64, err error) {
	tasks, err := p.s.Read(ctx, ids, redisstate.Want{Fields: redisstate.Head})
	for _, t := range tasks {
		if t.Task != nil && !t.Task.State.Finished() {
			unfinished = append(unfinished, t.ID)
		}
	}
	return unfinished, err
}
