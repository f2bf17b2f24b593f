package admin

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/redisstate"
)

// How bad something is.
const (
	SeverityOK      = "ok"
	SeverityNotice  = "notice"  // good to know
	SeverityProblem = "problem" // tasks are not done, or may be lost, or others may get in
)

// A Diagnosis is something that was looked at, and what to do about it.
type Diagnosis struct {
	Severity string
	Subject  string // redis, server, workers, memory, tasks, clock
	Text     string
	Cure     string // "" for none
}

// Vitals are what diagnoses are made from.
type vitals struct {
	redis    config.Redis
	info     redisstate.Info // empty: the embedded Redis
	schema   string
	loading  bool        // a dump is being loaded, or was not loaded to its end
	clockOff tdf.Seconds // how far this machine's clock is before Redis's
	stats    Stats
	moved    tdf.Time // when a task was claimed or ended last, as far as that was lately
	workers  []Worker
	taskSize int64 // bytes of one task that is open; 0: not known
	long     []longRun
}

// A longRun is a task that has run for far longer than others of its program.
type longRun struct {
	task  *tdf.Task
	runs  tdf.Seconds
	usual tdf.Seconds // 95 of 100 took no longer
}

// Diagnose looks at Redis and its settings, at server, workers and tasks, and says of each what is the matter, and what to
// do about it (docs/tdf.md). Of the embedded Redis, which tells little about itself, less is said.
func (a *Admin) Diagnose(ctx context.Context) ([]Diagnosis, error) {
	v, err := a.vitals(ctx)
	if err != nil {
		return nil, fmt.Errorf("examining the namespace: %w", err)
	}
	return v.diagnose(), nil
}

func (a *Admin) vitals(ctx context.Context) (v vitals, err error) {
	r, err := a.redis(ctx)
	if err != nil {
		return v, err
	}
	v.redis = a.Config.Redis
	for _, step := range []func(context.Context, *redisstate.Store, *vitals) error{
		vitalsOfRedis, vitalsOfTasks, vitalsOfMoves, vitalsOfRuns,
	} {
		if err := step(ctx, r, &v); err != nil {
			return v, err
		}
	}
	return v, nil
}

func vitalsOfRedis(ctx context.Context, r *redisstate.Store, v *vitals) (err error) {
	if v.info, err = r.Info(ctx, "memory", "persistence", "replication"); err != nil {
		return err
	}
	if v.schema, err = r.SchemaOf(ctx); err != nil {
		return err
	}
	mark, err := r.RestoreUnderWay(ctx)
	if err != nil {
		return err
	}
	v.loading = mark != ""
	before := time.Now()
	now, err := r.Now(ctx)
	v.clockOff = tdf.At(before.Add(time.Since(before) / 2)).Sub(now)
	return err
}

const sampledSizes = 20

func vitalsOfTasks(ctx context.Context, r *redisstate.Store, v *vitals) (err error) {
	if err := statsOfTasks(ctx, r, &v.stats); err != nil {
		return err
	}
	v.stats.Workers, v.stats.Memory = map[string]int{}, memoryOf(v.info)
	if err := statsOfWorkers(ctx, r, &v.stats); err != nil {
		return err
	}
	if v.workers, err = workersOf(ctx, r); err != nil {
		return err
	}
	page, err := listing.Find(ctx, r, listing.Query{States: []tdf.State{tdf.Open}}, "", sampledSizes)
	if err != nil {
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

// places is about what a task's places in the lists take: among the open ones, in its group, and among those that
// are due.
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

// idle is for how long no task has to be claimed or end before a slot counts as one that has nothing to do.
const idle = tdf.Seconds(30)

// sampledOpened is how many of the newest open tasks tell whether rounds have ended.
const sampledOpened = 50

// vitalsOfMoves looks for tasks that were claimed or ended lately, those too whose rounds are forgiven.
func vitalsOfMoves(ctx context.Context, r *redisstate.Store, v *vitals) error {
	since := v.stats.At.Add(-idle)
	moved, err := r.Between(ctx, since, tdf.Never, tdf.Running, tdf.Executed, tdf.Succeeded, tdf.Failed, tdf.TimedOut, tdf.Archived)
	if err != nil || moved > 0 {
		v.moved = v.stats.At
		return err
	}
	page, err := listing.Find(ctx, r, listing.Query{States: []tdf.State{tdf.Open}}, "", sampledOpened)
	for _, t := range page.Tasks {
		last := t.Rounds.At(t.LastRun())
		v.moved = max(v.moved, last.Entered[tdf.Running], last.Entered[tdf.Executed], last.FailedAt, last.TimedOutAt, last.LostAt)
	}
	return err
}

// Bounds of the look for long runs.
const (
	sampledEnded   = 1000
	sampledRunning = 500
	leastEnded     = 10 // of a program, to say what is usual
	farLonger      = 10 // times as long as what is usual
	leastLong      = tdf.Seconds(60)
)

func vitalsOfRuns(ctx context.Context, r *redisstate.Store, v *vitals) error {
	running, err := listing.Find(ctx, r, listing.Query{States: []tdf.State{tdf.Running}, OldestFirst: true}, "", sampledRunning)
	if err != nil || len(running.Tasks) == 0 {
		return err
	}
	ended, err := listing.Find(ctx, r, ranToTheEnd(""), "", sampledEnded)
	if err != nil {
		return err
	}
	v.long = longRuns(v.stats.At, running.Tasks, ended.Tasks)
	return nil
}

func longRuns(now tdf.Time, running, ended []*tdf.Task) []longRun {
	took := map[string][]tdf.Seconds{}
	for _, t := range ended {
		if seconds, ran := runTime(t.Current()); ran {
			took[t.Program] = append(took[t.Program], seconds)
		}
	}
	var long []longRun
	for _, t := range running {
		times := slices.Sorted(slices.Values(took[t.Program]))
		began := max(t.Current().Entered[tdf.Running], t.Current().Started)
		if len(times) < leastEnded || began == 0 {
			continue
		}
		usual := times[(len(times)*95-1)/100]
		if runs := now.Sub(began); runs > max(leastLong, farLonger*usual) {
			long = append(long, longRun{t, runs, usual})
		}
	}
	return long
}

// number reads one of Redis's figures; 0 for none.
func number(info redisstate.Info, name string) int64 {
	n, _ := strconv.ParseInt(info[name], 10, 64)
	return n
}
