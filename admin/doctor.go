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

// The severities of diagnoses.
const (
	SeverityOK      = "ok"
	SeverityNotice  = "notice"
	SeverityProblem = "problem" // tasks do not finish or may be lost, or strangers may run programs
)

// A Diagnosis is a finding of [Admin.Diagnose] about one subject.
type Diagnosis struct {
	Severity string `json:"severity"`
	Subject  string `json:"subject"` // redis, server, workers, memory, tasks or clock
	Text     string `json:"text"`
	Fix      string `json:"fix,omitempty"` // what the user can do; "" if nothing is needed
}

// vitals holds the facts from which diagnose makes the diagnoses.
type vitals struct {
	numbers
	census
	redis    config.Redis
	info     redisstate.Info // empty for the embedded Redis
	memory   Memory
	schema   string
	loading  bool        // a dump is being loaded, or the load was interrupted
	clockOff tdf.Seconds // how far this machine's clock is ahead of Redis's clock
	moved    tdf.Time    // when a task was last claimed or executed; 0 if that was long ago
	taskSize int64       // size of one open task in bytes; 0 if unknown
	long     []longRun
}

// A longRun is a running task that takes far longer than other runs of its program.
type longRun struct {
	task  *tdf.Task
	runs  tdf.Seconds
	usual tdf.Seconds // the run time that 95 of 100 runs do not exceed
}

// Diagnose checks Redis and its settings, the server, the workers and the tasks. It returns a diagnosis for each subject that it
// checked. The embedded Redis reports little about itself, so it gets fewer diagnoses.
func (a *Admin) Diagnose(ctx context.Context) ([]Diagnosis, error) {
	s, err := a.redis(ctx)
	if err != nil {
		return nil, err
	}
	v := vitals{redis: a.parts.Config.Redis}
	for _, step := range []func(context.Context, *redisstate.Store, *vitals) error{
		vitalsOfRedis, vitalsOfTasks, vitalsOfMoves, vitalsOfRuns,
	} {
		if err := step(ctx, s, &v); err != nil {
			return nil, fmt.Errorf("diagnose the namespace: %w", err)
		}
	}
	return v.diagnose(), nil
}

func vitalsOfRedis(ctx context.Context, r *redisstate.Store, v *vitals) (err error) {
	if v.info, err = r.Info(ctx, "memory", "persistence", "replication"); err != nil {
		return err
	}
	v.memory = memoryOf(v.info)
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
	if v.numbers, err = readNumbers(ctx, r); err != nil {
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

// places is the approximate size in bytes of a task's entries in the lists of open tasks, of its group, and of due tasks.
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
const idle = tdf.Seconds(30)

// sampledOpened is the number of newest open tasks whose earlier rounds are checked.
const sampledOpened = 50

// vitalsOfMoves stores in v when a task was last claimed or executed. It includes tasks that are open again.
func vitalsOfMoves(ctx context.Context, r *redisstate.Store, v *vitals) error {
	since := v.at.Add(-idle)
	moved, err := r.Between(ctx, since, tdf.Never, tdf.Running, tdf.Executed, tdf.Succeeded, tdf.Failed, tdf.TimedOut, tdf.Archived)
	if err != nil || moved > 0 {
		v.moved = v.at
		return err
	}
	page, err := listing.Find(ctx, r, listing.Query{States: []tdf.State{tdf.Open}}, "", sampledOpened)
	for _, t := range page.Tasks {
		last := t.Rounds.At(t.LastRun())
		v.moved = max(v.moved, last.Entered[tdf.Running], last.Entered[tdf.Executed], last.FailedAt, last.TimedOutAt, last.LostAt)
	}
	return err
}

// Limits of the search for long runs.
const (
	sampledEnded   = 1000
	sampledRunning = 500
	leastEnded     = 10 // the minimum number of finished tasks from which a program's usual run time is known
	farLonger      = 10 // the multiple of the usual run time
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
	v.long = longRuns(v.at, running.Tasks, ended.Tasks)
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

// number returns a number from the output of INFO, or 0 if INFO does not contain the number.
func number(info redisstate.Info, name string) int64 {
	n, _ := strconv.ParseInt(info[name], 10, 64)
	return n
}
