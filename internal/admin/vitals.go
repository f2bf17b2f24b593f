package admin

import (
	"context"
	"errors"
	"time"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/callbacks"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
)

// vitals holds the facts about a namespace from which diagnose makes the diagnoses.
type vitals struct {
	snapshot
	census
	waited, dueLag task.Seconds // as in Stats
	redis          config.Redis
	info           conn.Info // empty for the embedded Redis
	memory         Memory
	replication    Replication
	untuned        []conn.Tuning
	lacks          error // the user lacks rights
	schema         string
	clockOff       task.Seconds // how far this machine's clock is ahead of Redis's clock
	moved          task.Time    // when a task was last claimed or executed; 0 if that was long ago
	taskSize       int64        // size of one open task in bytes; 0 if unknown
	long           []longRun
	original       []*task.Task // running tasks that workers of the original TDF hold

	handlings    []callbacks.Handling // of which tasks managers call the callbacks
	callbacks    int64                // the number of callbacks that have failed for good
	periodics    []*task.PeriodicRecord
	badPeriodics []error // of the records that are invalid

	requirements []string // those with due tasks

	waiting int64                       // the number of tasks that wait for other tasks
	awaited []dependencies.AwaitedGroup // some of the groups that tasks wait for
	waits   map[waiter][]waiter         // what tasks and groups wait for, from a sample
}

func vitalsOfRedis(ctx context.Context, r *redisstate.Store, v *vitals) (err error) {
	if v.info, err = r.Conn.Info(ctx, "memory", "persistence", "replication"); err != nil {
		return err
	}
	v.memory, v.replication = memoryOf(v.info), r.Conn.WithSentinels(ctx, r.Conn.Replication(v.info))
	if err := r.Conn.CheckRights(ctx); err != nil && !errors.As(err, new(*conn.RefusedError)) {
		return err
	} else if err != nil {
		v.lacks = err
	}
	err = readings(
		func() error { return v.readRoom(ctx, storeOf(r)) },
		func() (err error) { v.untuned, err = r.Conn.Untuned(ctx); return err },
		func() (err error) { v.schema, err = r.Conn.SchemaOf(ctx); return err },
	)
	if err != nil {
		return err
	}
	before := time.Now()
	now, err := r.Now(ctx)
	v.clockOff = task.At(before.Add(time.Since(before) / 2)).Sub(now)
	return err
}

const sampledSizes = 20

func vitalsOfTasks(ctx context.Context, r *redisstate.Store, v *vitals) (err error) {
	var page listing.Page
	err = readings(
		func() error {
			n, err := readNumbers(ctx, r)
			v.fleet, v.counts, v.waited, v.dueLag = n.fleet, n.counts, n.waited, n.dueLag
			return err
		},
		func() (err error) { v.paused, err = r.Limits.Paused(ctx); return err },
		func() (err error) { v.limits, err = r.Limits.Limits(ctx); return err },
		func() (err error) { v.requirements, err = r.Counters.Waiting(ctx); return err },
		func() (err error) { v.callbacks, err = r.Callbacks.CountGivenUp(ctx); return err },
		func() (err error) {
			page, err = listing.Find(ctx, r, task.Query{States: []task.State{task.Open}}, "", sampledSizes)
			return err
		},
	)
	if err != nil {
		return err
	}
	if v.handlings, err = r.Callbacks.Handlings(ctx, v.at); err != nil { // the readings have set the time
		return err
	}
	var ids []int64
	for _, t := range page.Tasks {
		ids = append(ids, t.ID)
	}
	sizes, err := r.MemoryOf(ctx, ids)
	v.taskSize = meanSize(sizes)
	return err
}

// places is the approximate number of bytes that a task's id takes in three lists: the open tasks, the tasks of the
// group, and the due tasks.
const places = 350

func meanSize(sizes []int64) int64 {
	sum, n := int64(0), int64(0)
	for _, size := range sizes {
		if size > 0 {
			sum, n = sum+size, n+1
		}
	}
	if n == 0 {
		return 0
	}
	return sum/n + places
}

// idle is a time in seconds. If no task was claimed or executed for longer, free slots are suspicious.
const idle = task.Seconds(30)

// sampledOpened is the number of open tasks whose earlier rounds are checked. The newest open tasks are checked.
const sampledOpened = 50

// vitalsOfMoves stores in v the time when a task was last claimed or executed. It considers tasks in all states, even
// tasks that are open again.
func vitalsOfMoves(ctx context.Context, r *redisstate.Store, v *vitals) error {
	since := v.at.Add(-idle)
	moved, err := r.Between(ctx, since, task.Never,
		task.Running, task.Executed, task.Succeeded, task.Failed, task.TimedOut, task.Archived)
	if err != nil || moved > 0 {
		v.moved = v.at
		return err
	}
	page, err := listing.Find(ctx, r, task.Query{States: []task.State{task.Open}}, "", sampledOpened)
	for _, t := range page.Tasks {
		last := t.Rounds.At(t.LastRun())
		v.moved = max(v.moved, last.Entered[task.Running], last.Entered[task.Executed], last.FailedAt, last.TimedOutAt,
			last.LostAt)
	}
	return err
}
