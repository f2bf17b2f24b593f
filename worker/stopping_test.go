package worker

import (
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A stopping is a worker that runs a task, while a second task is open.
type stopping struct {
	*world
	*pipe  // of the program
	worker *Worker
	proxy  *redistest.Proxy  // between the worker and Redis
	store  *redisstate.Store // of the worker
	stop   func()            // the first signal
	done   chan error        // of Run
}

// A stopped is what is left of the task and of the worker.
type stopped struct {
	State    tdf.State
	Releases int
	Against  int // losses, failures and time-outs of the task
	Output   string
	Worker   string // its state in Redis
	Status   int    // of tdf-worker
}

var (
	executed = stopped{State: tdf.Succeeded, Output: "done\n", Worker: presence.WorkerGone}
	released = stopped{State: tdf.Open, Releases: 1, Worker: presence.WorkerGone}
	dropped  = stopped{State: tdf.Running, Worker: presence.WorkerWorking}
	nameLost = stopped{State: tdf.Running, Worker: presence.WorkerWorking, Status: command.StatusRefused}
)

const (
	finishing = "#!/bin/sh\necho begun >\"$1\"; read line <\"$1\"; echo done\n"
	stubborn  = "#!/bin/sh\ntrap '' TERM\nexec 3>\"$1\"; echo begun >&3; while :; do sleep 1000; done\n"
)

// stops are the ways in which a worker's work ends. The keys are the first cells of the table in docs/operations.md,
// "Stopping a worker".
var stops = map[string]map[string]struct {
	script string // "" means that setup.sh, after a fetch, takes long
	end    func(s *stopping)
	want   stopped
	logs   string // once
}{
	"a first signal": {
		"within the grace": {finishing, func(s *stopping) {
			s.stop()
			s.reaches(presence.WorkerDraining)
			s.finish()
		}, executed, "msg=executed"},
		"after the grace": {waiting, func(s *stopping) {
			s.stop()
			s.timers.fire(s, s.cfg.Grace)
			s.timers.waitedFor(s, s.cfg.KillGrace)
		}, released, "msg=released"},
		"after both graces": {stubborn, func(s *stopping) {
			s.stop()
			s.timers.fire(s, s.cfg.Grace)
			s.endsAfter(s.cfg.KillGrace)
		}, released, "msg=released"},
		"during a fetch": {"", func(s *stopping) {
			s.stop()
			s.timers.fire(s, s.cfg.Grace)
		}, released, "msg=released"},
	},
	"a second signal": {"": {stubborn, func(s *stopping) {
		s.stop()
		s.worker.StopNow()
	}, released, "stopping at once"}},
	"`tdf drain`": {"": {finishing, func(s *stopping) {
		s.drain("a user")
		s.timers.beat(s, "the worker to drain", func() bool { return s.workerState() == presence.WorkerDraining })
		s.finish()
		eventually(s, "the report", func() bool { return s.task(1).State == tdf.Succeeded })
		s.nextHeartbeats(3) // the worker does not end
		s.stop()
	}, executed, "draining by order"}},
	"`--time-limit`": {"": {waiting, func(s *stopping) {
		s.timers.fire(s, s.cfg.TimeLimit-s.cfg.Grace-s.cfg.KillGrace-reportBound-answerBound)
		s.timers.waitedFor(s, s.cfg.Grace)
		s.reaches(presence.WorkerDraining)
		expect.Equal(s, s.task(1).State, tdf.Running, "within the grace")
		s.timers.fire(s, s.cfg.Grace)
	}, released, "the time limit is near"}},
	"another worker takes the name": {
		"at work": {waiting, (*stopping).loseName, nameLost, "another worker has taken the name"},
		"after a signal": {waiting, func(s *stopping) {
			s.stop()
			s.reaches(presence.WorkerDraining)
			s.loseName()
		}, nameLost, "another worker has taken the name"},
	},
	"Redis is away when the worker stops": {
		"the output is kept": {finishing, func(s *stopping) {
			s.withoutRedis()
			s.timers.fire(s, s.worker.reportBound())
			s.timers.fire(s, s.worker.answer) // the bound of the last claim
			s.timers.fire(s, s.worker.answer) // the bound of the last heartbeat
		}, dropped, `msg="kept output that Redis does not hold"`},
		"the output cannot be kept": {finishing, func(s *stopping) {
			must(s, os.WriteFile(s.world.path("p/results"), nil, 0o644))
			s.withoutRedis()
			s.timers.fire(s, s.worker.reportBound())
			s.timers.fire(s, s.worker.answer)
			s.timers.fire(s, s.worker.answer)
		}, dropped, `msg="output could not be kept"`},
		"after a second signal": {finishing, func(s *stopping) {
			s.withoutRedis()
			s.worker.StopNow()
			s.endsAfter(s.worker.answer)
		}, dropped, "the last heartbeat could not be sent"},
	},
}

// stopTests play the other rows of the table.
var stopTests = map[string][]func(*testing.T){
	"a third signal, SIGKILL or a crash":         {TestStartEndsLeftProcesses, TestOutputOfAKilledWorkerIsKept},
	"SIGTERM for all processes":                  {TestSIGTERMForAllProcesses},
	"`--idle-timeout`":                           {TestIdleTimeout},
	"a lease runs out, with `on_lease_lost=end`": {TestAProgramEndsWithItsLease, TestALateClaimThatIsNotRenewed},
	"a handler ignores its context":              {TestStopDoesNotWaitForAHandler},
	"a full disk, with `tdf run`":                {TestEndOnFullDisk},
}

// Each row of the table in docs/operations.md, "Stopping a worker", has a test. TestPrefetchedTasksAreGivenBack plays
// the column of prefetched tasks.
func TestStopping(t *testing.T) {
	page := string(expect.Result(os.ReadFile("../docs/operations.md")).Value(t))
	_, table, _ := strings.Cut(page, "\n| what happens |")
	table, _, _ = strings.Cut(table, "\n\n")
	var rows []string
	for _, line := range strings.Split(table, "\n")[2:] {
		rows = append(rows, strings.TrimSpace(strings.Split(line, "|")[1]))
	}
	slices.Sort(rows)
	tests := slices.Concat(slices.Collect(maps.Keys(stops)), slices.Collect(maps.Keys(stopTests)))
	expect.Equal(t, rows, slices.Sorted(slices.Values(tests)), "rows of docs/operations.md")
	for row, all := range stops {
		for name, c := range all {
			t.Run(row+"/"+name, func(t *testing.T) {
				s, wait := newStopping(t, c.script)
				c.end(s)
				status := wait()
				if s.pipe.file != nil { // the program has not ended by itself
					s.ended()
				}
				got := s.task(1)
				expect.Equal(t, stopped{
					got.State, got.Releases, got.Losses + got.Fails + got.Timeouts, got.Rounds.At(0).Output, s.workerState(), status,
				}, c.want)
				expect.Equal(t, s.task(2).State, tdf.Open, "the next task")
				expect.Equal(t, strings.Count(s.log.String(), c.logs), 1, c.logs, "in", s.log.String())
			})
		}
	}
}

// newStopping starts a worker, and returns when its program has begun. wait returns the exit status of tdf-worker.
func newStopping(t *testing.T, script string) (s *stopping, wait func() (status int)) {
	w := newWorld(t)
	w.cfg.Grace, w.cfg.KillGrace, w.cfg.TimeLimit = 2*time.Hour, 3*time.Hour, 40*time.Hour
	p, source := w.pipe(), handMade
	if script == "" {
		source = w.archive("run.sh", good, "setup.sh", "#!/bin/sh\nexec 3>"+p.path+"; echo begun >&3; sleep 1000")
	} else {
		w.script("p", script)
	}
	w.open(p.path, from(source))
	w.open("")
	s = &stopping{world: w, pipe: p, proxy: redistest.NewProxy(t, redistest.Shared(t)), done: make(chan error, 1)}
	s.store = w.connect(s.proxy.Addr)
	s.worker = w.workerOn(broker.WholeOf(s.store))
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	go func() { s.done <- s.worker.Run(ctx) }()
	p.begun()
	return s, func() int {
		defer stop()
		return command.Status(context.Background(), "tdf-worker", <-s.done, io.Discard)
	}
}

func (s *stopping) reaches(state string) {
	eventually(s, state, func() bool { return s.workerState() == state })
}

// endsAfter lets all timers of d expire until the worker has ended.
func (s *stopping) endsAfter(d time.Duration) {
	eventually(s, "the end of the worker", func() bool {
		s.timers.expire(d)
		return len(s.done) > 0
	})
}

// finish lets the program end.
func (s *stopping) finish() {
	s.ended()
	s.release()
	s.pipe.file = nil
}

// withoutRedis lets the program end and the worker stop while Redis is away.
func (s *stopping) withoutRedis() {
	s.proxy.Refuse()
	s.proxy.Cut()
	programs := s.programs()
	s.finish()
	eventually(s, "the end of the program", func() bool {
		return !slices.ContainsFunc(programs, func(process string) bool {
			_, err := os.Stat(process)
			return err == nil
		})
	})
	s.stop()
}

// programs returns the processes that have the pipe among their arguments.
func (s *stopping) programs() (all []string) {
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range found {
		if text, _ := os.ReadFile(name); strings.Contains(string(text), s.pipe.path) {
			all = append(all, filepath.Dir(name))
		}
	}
	return all
}

func (s *stopping) loseName() {
	other := s.connect(redistest.Shared(s))
	info := presence.WorkerInfo{Name: "w1", Host: "elsewhere", Lease: 60, State: presence.WorkerWorking}
	_, since, err := other.Presence.TakeName(s.Context(), info, presence.PriorOwner{Gone: s.store.Conn.Boot()})
	must(s, err)
	expect.Result(other.GiveUp(s.Context(), "w1", since)).Is(s, 1)
	s.timers.beat(s, "the loss of the name", func() bool { return strings.Contains(s.log.String(), "another worker has taken the name") })
	expect.Equal(s, s.registered()["host"], "elsewhere", "the name belongs to")
}
