package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/tdf-framework/tdf/internal/jsonview"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/counts"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// Stats are the metrics of a namespace.
type Stats struct {
	Namespace string      `json:"namespace"`
	At        time.Time   `json:"time" as:"unix"` // when Stats read the metrics, by Redis's clock
	Counts    task.Counts `json:"tasks"`

	Rate float64 `json:"done_per_second"` // tasks that finished per second, over the last minute
	// time since the oldest open task became claimable; 0 if unknown, or if no task is open
	Waited time.Duration `json:"oldest_open_wait_seconds"`
	// how long the longest waiting due task has been due; 0 if no task is due
	DueLag time.Duration `json:"due_lag_seconds"`

	Server time.Time `json:"server_seen" as:"unix"` // when a server was seen last; zero if never
	// number of workers by state: starting, working, draining, silent
	Workers map[string]int `json:"workers"`
	Slots   int            `json:"slots"` // slots of the workers that claim tasks
	Busy    int            `json:"busy"`  // slots in which a task runs

	Queues  []Queue `json:"queues"`            // the queues with tasks, and those that are paused, ordered by name
	Waiting int64   `json:"waiting_for_tasks"` // number of open tasks that wait for other tasks

	Programs     int   `json:"programs"` // number of programs that are stored in the namespace
	ProgramBytes int64 `json:"program_bytes"`

	CallbacksFailed int64 `json:"callbacks_failed"` // callbacks that have failed for good; some tasks may have changed since

	Memory      Memory      `json:"-"`
	Replication Replication `json:"-"`

	History History `json:"history"` // only from [Admin.Stats]
}

// Replication says which Redis is the primary, and how far its replicas are.
type Replication = conn.Replication

// Memory is the memory of Redis in bytes. All fields are 0 for the embedded Redis.
type Memory struct {
	Used   int64 // memory that Redis uses for all namespaces together
	Limit  int64 // maxmemory; 0 means no limit
	System int64 // memory of the machine
}

// WorkerStates returns the states by which [Stats] groups workers.
func WorkerStates() []string {
	return []string{presence.WorkerStarting, WorkerWorking, WorkerDraining, WorkerSilent}
}

// MarshalJSON writes the counts of all states, and times as seconds.
func (s Stats) MarshalJSON() ([]byte, error) {
	o := jsonview.Of(s)
	o.Set("tasks", allStates(s.Counts))
	o.Set("redis_memory_bytes", s.Memory.Used)
	o.Set("redis_memory_limit_bytes", s.Memory.Limit)
	return o.MarshalJSON()
}

// allStates returns the counts of all states, including states without tasks.
func allStates(c task.Counts) map[task.State]int64 {
	all := map[task.State]int64{}
	for _, state := range task.States {
		all[state] = c[state]
	}
	return all
}

const rateSpan = task.Seconds(60)

// Stats reads the metrics. The number of tasks hardly affects how long this takes.
func (a *Admin) Stats(ctx context.Context) (Stats, error) {
	stats, err := a.StatsAgain(ctx, &QueueCounter{})
	if err != nil {
		return stats, err
	}
	stats.History, err = a.History(ctx)
	return stats, err
}

// StatsAgain does the same as Stats, for a caller that reads the metrics again and again with the same QueueCounter. If
// there are thousands of queues, it costs less, and the numbers of queues with few tasks may be some calls old.
func (a *Admin) StatsAgain(ctx context.Context, c *QueueCounter) (Stats, error) {
	s := a.redis()
	stats := Stats{Namespace: a.parts.Config.Namespace}
	var n numbers
	var queues queueReading
	var info conn.Info
	err := readings(
		func() (err error) { n, err = readNumbers(ctx, s); return err },
		func() error { return queues.read(ctx, s, c) },
		func() (err error) { stats.Waiting, err = dependencies.CountWaiting(ctx, s); return err },
		func() error { return readPrograms(ctx, s, &stats) },
		func() (err error) { stats.CallbacksFailed, err = s.Callbacks.CountGivenUp(ctx); return err },
		func() (err error) { info, err = s.Conn.Info(ctx, "memory", "replication"); return err },
	)
	if err != nil {
		return stats, fmt.Errorf("read statistics: %w", err)
	}
	n.fill(&stats)
	stats.Queues, stats.Memory = queues.queues(n.at, n.counts), memoryOf(info)
	stats.Replication = s.Conn.WithSentinels(ctx, s.Conn.Replication(info))
	return stats, nil
}

// numbers holds the metrics of the tasks and the fleet.
type numbers struct {
	at             task.Time
	counts         task.Counts
	waited, dueLag task.Seconds
	rate           float64
	fleet          fleet
}

func readNumbers(ctx context.Context, s *redisstate.Store) (n numbers, err error) {
	if n.at, err = s.Now(ctx); err != nil {
		return n, err
	}
	tasks, err := s.Counts(ctx)
	if err != nil {
		return n, err
	}
	n.counts = tasks
	due, _, err := s.NextDue(ctx)
	if err != nil {
		return n, err
	}
	n.dueLag = max(0, n.at.Sub(due))
	if n.waited, err = longestWait(ctx, storeOf(s), n.at); err != nil {
		return n, err
	}
	finished, err := finishedSince(ctx, storeOf(s), n.at.Add(-rateSpan), n.at)
	if err != nil {
		return n, err
	}
	n.rate = finished / float64(rateSpan)
	n.fleet, err = readFleet(ctx, storeOf(s), n.at, tasks[task.Running])
	return n, err
}

func (n *numbers) fill(s *Stats) {
	c := n.fleet.count()
	s.At, s.Counts, s.Waited, s.DueLag, s.Rate = n.at.Std(), n.counts, n.waited.Std(), n.dueLag.Std(), n.rate
	s.Server, s.Workers, s.Slots, s.Busy = n.fleet.server.Std(), c.states, c.slots, c.busy
}

// Limits of the function longestWait.
const (
	// how many open tasks are read at first, because one of them is almost always enough
	openAtFirst  = 5
	openPerPage  = 50                       // how many are read at once afterwards
	mostOpenRead = 2000                     // how many open tasks are read at most; the first tasks may be held
	longAgo      = task.Time(1_000_000_000) // the year 2001; an earlier score is not a time
)

// longestWait returns how long ago the oldest open task became claimable. It skips held tasks, and tasks whose scores
// are not times: a user or a component of the original TDF may have written these scores. If it must skip too many
// tasks, it returns 0.
func longestWait(ctx context.Context, s store, now task.Time) (longest task.Seconds, err error) {
	open, size := redisstate.ListQuery{States: []task.State{task.Open}, OldestFirst: true}, openAtFirst
	for read := 0; read < mostOpenRead && longest == 0; read += size {
		tasks, last, err := nextTasks(ctx, s, &open, size)
		if err != nil {
			return 0, err
		}
		for _, t := range tasks {
			if from := t.ClaimableFrom(); t.State == task.Open && from > longAgo && !t.IsHeld() {
				longest = max(longest, now.Sub(from))
			}
		}
		size = openPerPage
		if last {
			break
		}
	}
	return longest, nil
}

// nextTasks reads the next tasks that a query selects, without texts.
func nextTasks(ctx context.Context, s store, of *redisstate.ListQuery, most int) (tasks []*task.Task, last bool,
	err error,
) {
	places, last, err := s.Find(ctx, *of, most)
	if err != nil || len(places) == 0 {
		return nil, true, err
	}
	of.Behind = &places[len(places)-1]
	stored, err := s.Read(ctx, redisstate.IDsOf(places), redisstate.Want{
		Fields: redisstate.Facts,
		Rounds: redisstate.LastRounds(1),
	})
	for _, x := range stored {
		if x.Task != nil {
			tasks = append(tasks, x.Task)
		}
	}
	return tasks, last, err
}

// sampledArchived is the number of archived tasks that finishedSince reads as a sample.
const sampledArchived = 50

// finishedSince returns how many tasks finished in a span. A task that was archived in the span may have finished
// earlier. If many tasks were archived in the span, finishedSince reads only a sample of them, and the result is an
// estimate.
func finishedSince(ctx context.Context, s store, from, to task.Time) (float64, error) {
	waiting, err := s.Between(ctx, from, to, listing.Settled...)
	if err != nil {
		return 0, err
	}
	archived, err := s.Between(ctx, from, to, task.Archived)
	if err != nil || archived == 0 {
		return float64(waiting), err
	}
	tasks, _, err := nextTasks(ctx, s, &redisstate.ListQuery{States: []task.State{task.Archived}, After: from},
		sampledArchived)
	lately := 0
	for _, t := range tasks {
		if t.Current().Entered[listing.EndState(t)] >= from {
			lately++
		}
	}
	return float64(waiting) + float64(archived)*float64(lately)/float64(max(1, len(tasks))), err
}

// Activity returns what the namespace has counted of its busiest queues, at most the given number, and of all other
// queues together (docs/metrics.md). A counter that an earlier call had makes it cheaper, and then some counts of the
// others may be up to three calls old.
func (a *Admin) Activity(ctx context.Context, c *counts.ActivityCounter, most int) ([]counts.Activity, error) {
	return a.redis().Counters.Activity(ctx, c, most)
}

// A Connection says how this process's calls to Redis went.
type Connection struct {
	Outages     int64        // the outages that it has noticed
	Unconfirmed int64        // the calls whose writes too few replicas have confirmed in time
	Latency     conn.Latency // how long its calls have waited for answers

	CertificateEnds time.Time // of the certificate by which Redis knows this process; zero without one
}

// Connection says how this process's calls to Redis went.
func (a *Admin) Connection() Connection {
	s := a.redis()
	return Connection{s.Conn.Outages(), s.Conn.Unconfirmed(), s.Conn.Latency(), s.Conn.CertificateEnds()}
}

func readPrograms(ctx context.Context, s *redisstate.Store, stats *Stats) error {
	programs, err := s.Programs.Programs(ctx)
	stats.Programs = len(programs)
	for _, p := range programs {
		stats.ProgramBytes += p.Bytes
	}
	return err
}

func memoryOf(info conn.Info) Memory {
	return Memory{info.Number("used_memory"), info.Number("maxmemory"), info.Number("total_system_memory")}
}

// Outcomes counts the finished tasks of a group by their outcomes. An empty group means all tasks. Each task counts
// once, even if managers archive tasks meanwhile. Outcomes reads every archived and every expired task, which takes
// about 10 s for 1,000,000 tasks.
func (a *Admin) Outcomes(ctx context.Context, group string) (map[string]int64, error) {
	s := a.redis()
	outcomes, err := outcomesOf(ctx, storeOf(s), group)
	if err != nil {
		return nil, fmt.Errorf("count outcomes: %w", err)
	}
	return outcomes, nil
}

func outcomesOf(ctx context.Context, s store, group string) (map[string]int64, error) {
	tasks, err := s.Counts(ctx, groupsOf(group)...)
	if err != nil {
		return nil, err
	}
	outcomes := map[string]int64{}
	if tasks[task.Expired]+tasks[task.Archived] == 0 {
		for _, state := range listing.Settled {
			outcomes[string(state)] = tasks[state]
		}
		return outcomes, nil
	}
	noTexts := func(*task.Task) []redisstate.TextsOf { return nil }
	err = listing.ByID(ctx, s, task.Query{Group: group, States: listing.Finished}, noTexts, func(t *task.Task) bool {
		outcomes[listing.LastOutcome(t)]++
		return true
	})
	return outcomes, err
}
