package redisstate

import (
	"cmp"
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A periodicChange changes the record of a periodic, as part of a [Unit]. The text "" means that there is no record.
type periodicChange struct{ name, from, to string }

// Periodics returns the texts of all records of periodic tasks.
func (s *Store) Periodics(ctx context.Context) (task.Hash, error) {
	all := task.Hash{}
	err := s.Conn.EachField(ctx, "read periodics", s.Keys.Periodic(), func(name, text string) bool {
		all[name] = text
		return true
	})
	return all, err
}

// PeriodicText returns the text of a record, or "" if there is none.
func (s *Store) PeriodicText(ctx context.Context, name string) (string, error) {
	return conn.Ask(ctx, s.Conn, "read a periodic", func(r redis.Cmdable) *redis.StringCmd {
		return r.HGet(ctx, s.Keys.Periodic(), name)
	})
}

// CountPeriodics returns the number of records.
func (s *Store) CountPeriodics(ctx context.Context) (int, error) {
	n, err := conn.Ask(ctx, s.Conn, "count periodics", func(r redis.Cmdable) *redis.IntCmd {
		return r.HLen(ctx, s.Keys.Periodic())
	})
	return int(n), err
}

// ChangePeriodic changes the text of a record and opens tasks, in one step, which also puts the ids of the tasks before
// those in the record. It returns the ids of the tasks. If the record has another text than from, nothing changes, and
// the error is [ErrRecordChanged]. If Redis uses too much memory for new tasks, it does not wait, but returns
// [ErrNoRoom].
func (s *Store) ChangePeriodic(
	ctx context.Context, who, name, from, to string, open ...task.Properties,
) ([]int64, error) {
	if err := s.CheckOneStep(ctx, open); err != nil {
		return nil, err
	}
	outcomes, err := s.Apply(ctx, who, Unit{Open: open, periodic: &periodicChange{name, from, to}})
	if len(outcomes) == 0 {
		return nil, err
	}
	return outcomes[0].IDs, cmp.Or(outcomes[0].RefusedWith(ErrRecordChanged), err)
}

// RemovePeriodic removes a record.
func (s *Store) RemovePeriodic(ctx context.Context, name string) error {
	return s.Conn.Write(ctx, "remove a periodic", func(p redis.Pipeliner) { p.HDel(ctx, s.Keys.Periodic(), name) })
}

// CheckOneStep returns an error if one step cannot open the tasks.
func (s *Store) CheckOneStep(ctx context.Context, all []task.Properties) error {
	if err := task.ValidateAll(all); err != nil {
		return err
	}
	if len(all) > 0 && OpenBatch(all) < len(all) {
		return task.NewError(task.CodeInvalid, fmt.Sprintf("%d tasks are too many to open at once", len(all)))
	}
	if _, err := task.InOrder(all); err != nil {
		return err
	}
	if err := s.CheckDependencies(ctx, all); err != nil {
		return err
	}
	if err := task.CheckNoBlobs(all, "tasks of a periodic"); err != nil {
		return err
	}
	if err := s.CheckNamed(ctx, all); err != nil {
		return err
	}
	return s.Programs.NameDefinitions(ctx, all)
}

// UnfinishedOf returns those of the ids whose tasks exist and are not finished.
func (s *Store) UnfinishedOf(ctx context.Context, ids []int64) (unfinished []int64, err error) {
	tasks, err := s.Read(ctx, ids, Want{Fields: Head})
	for _, t := range tasks {
		if t.Task != nil && !t.Task.State.Finished() {
			unfinished = append(unfinished, t.ID)
		}
	}
	return unfinished, err
}
