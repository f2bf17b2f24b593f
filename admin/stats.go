package admin

import (
	"context"
	"fmt"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// Stats are the numbers by which a namespace is watched over.
type Stats struct {
	At     tdf.Time
	Counts manager.Counts

	Waited tdf.Seconds // since the oldest open task might have been claimed; 0: none might, or it is not known
	DueLag tdf.Seconds // since the server should have looked at the task that it must look at first
	Rate   float64     // tasks done in a second, over the last minute

	Server  tdf.Time       // when a server was seen last; 0: never
	Workers map[string]int // by their states: starting, working, draining; silent: their leases are over
	Slots   int            // of those that live
	Busy    int            // slots that run a task: a task whose lease is over holds none

	Programs     int // that are stored in the namespace
	ProgramBytes int64

	Memory Memory
}

// Memory is that of Redis, in bytes; all 0 for the embedded one.
type Memory struct {
	Used   int64
	Limit  int64 // maxmemory; 0: none
	System int64 // what the machine has
}

// The workers' states, with the one that no worker says of itself.
const workerSilent = "silent"

// WorkerStates are those by which [Stats] counts workers.
var WorkerStates = []string{"starting", "working", "draining", workerSilent}

const rateSpan = tdf.Seconds(60)

// Stats asks Redis for the numbers. It takes the same time however many tasks there are.
func (a *Admin) Stats(ctx context.Context) (Stats, error) {
	redis, err := a.redis(ctx)
	if err != nil {
		return Stats{}, err
	}
	s := Stats{Workers: map[string]int{}}
	for _, step := range []func(context.Context, *redisstate.Store, *Stats) error{
		statsOfTasks, statsOfWorkers, statsOfPrograms, statsOfRedis,
	} {
		if err := step(ctx, redis, &s); err != nil {
			return s, fmt.Errorf("reading the statistics: %w", err)
		}
	}
	return s, nil
}

func statsOfTasks(ctx context.Context, r *redisstate.Store, s *Stats) (err error) {
	if s.At, err = r.Now(ctx); err != nil {
		return err
	}
	if s.Counts, err = r.Counts(ctx); err != nil {
		return err
	}
	due, err := r.NextDue(ctx)
	if err != nil {
		return err
	}
	s.DueLag = max(0, s.At.Sub(due))
	if s.Waited, err = waited(ctx, r, s.At); err != nil {
		return err
	}
	n, err := doneSince(ctx, r, s.At.Add(-rateSpan), s.At)
	s.Rate = n / float64(rateSpan)
	return err
}

// Bounds of waited.
const (
	firstOpen = 50                      // so many are looked at, since what others opened may come first and tell nothing
	longAgo   = tdf.Time(1_000_000_000) // the year 2001: times before it are none
)

// waited returns since when the oldest of the first open tasks might have been claimed, as far as they tell. Tasks that were
// opened by hand, or by a component of the original TDF, may have a score that is no time at all.
func waited(ctx context.Context, s store, now tdf.Time) (tdf.Seconds, error) {
	page, err := listing.Find(ctx, s, listing.Query{States: []tdf.State{tdf.Open}, OldestFirst: true}, "", firstOpen)
	var longest tdf.Seconds
	for _, t := range page.Tasks {
		if from := max(t.StartAfter, t.Ready, t.Current().Entered[tdf.Open]); from > longAgo {
			longest = max(longest, now.Sub(from))
		}
	}
	return longest, err
}

// sampledArchived is how many of the archived tasks say what part of them was done when.
const sampledArchived = 200

// doneSince returns how many tasks were judged in a span. Those that were archived in it count as far as they were judged in
// it, too: of many, by a sample.
func doneSince(ctx context.Context, s store, from, to tdf.Time) (float64, error) {
	waiting, err := s.Between(ctx, from, to, listing.Settled...)
	if err != nil {
		return 0, err
	}
	archived, err := s.Between(ctx, from, to, tdf.Archived)
	if err != nil || archived == 0 {
		return float64(waiting), err
	}
	page, err := listing.Find(ctx, s, listing.Query{States: []tdf.State{tdf.Archived}, After: from}, "", sampledArchived)
	lately := 0
	for _, t := range page.Tasks {
		if t.Current().Entered[listing.EndState(t)] >= from {
			lately++
		}
	}
	return float64(waiting) + float64(archived)*float64(lately)/float64(max(1, len(page.Tasks))), err
}

func statsOfWorkers(ctx context.Context, r *redisstate.Store, s *Stats) (err error) {
	if s.Server, err = r.LastServerHeartbeat(ctx); err != nil {
		return err
	}
	workers, err := workersOf(ctx, r)
	if err != nil {
		return err
	}
	for _, w := range workers {
		switch {
		case w.State == "gone":
			continue
		case !w.Alive:
			s.Workers[workerSilent]++
			continue
		}
		s.Workers[w.State]++
		s.Slots += w.Slots
	}
	lost, err := lost(ctx, r, s.At)
	s.Busy = min(max(0, int(s.Counts[tdf.Running])-lost), s.Slots) // tasks and workers are read one after the other
	return err
}

// mostLost is how many of the running tasks, those that have run for the longest time, are asked for their leases.
const mostLost = 1000

// lost counts the running tasks whose leases are over: their workers are gone, and the server is yet to settle them.
func lost(ctx context.Context, s store, now tdf.Time) (int, error) {
	page, err := listing.Find(ctx, s, listing.Query{States: []tdf.State{tdf.Running}, OldestFirst: true}, "", mostLost)
	n := 0
	for _, t := range page.Tasks {
		if t.LeaseExpired(now) {
			n++
		}
	}
	return n, err
}

func statsOfPrograms(ctx context.Context, r *redisstate.Store, s *Stats) error {
	programs, err := r.Programs(ctx)
	s.Programs = len(programs)
	for _, p := range programs {
		s.ProgramBytes += p.Bytes
	}
	return err
}

func statsOfRedis(ctx context.Context, r *redisstate.Store, s *Stats) error {
	info, err := r.Info(ctx, "memory")
	s.Memory = memoryOf(info)
	return err
}

func memoryOf(info redisstate.Info) Memory {
	return Memory{number(info, "used_memory"), number(info, "maxmemory"), number(info, "total_system_memory")}
}
