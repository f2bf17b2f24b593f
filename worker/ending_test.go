package worker

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/rounddir"
	"github.com/tdf-framework/tdf/redisstate"
)

// leavingDeaf is a program that ends, and leaves a process that ignores SIGTERM.
const leavingDeaf = `#!/bin/sh
trap '' TERM
exec 3>"$1"
echo out
(while :; do sleep 1000; done) &
echo begun >&3
`

// If run.sh has ended, its result counts, whatever happens while the worker ends the processes that run.sh left behind.
func TestTheResultOfAnEndedProgramCounts(t *testing.T) {
	for name, happens := range map[string]func(w *world, worker *Worker, timers *clock, stop func()){
		"the timeout is over": func(w *world, _ *Worker, timers *clock, _ func()) {
			timers.fireBetween(w, 15*time.Minute, 17*time.Minute)
			timers.fire(w, w.cfg.KillGrace)
		},
		"the worker stops": func(w *world, _ *Worker, timers *clock, stop func()) {
			stop()
			timers.fire(w, w.cfg.Grace)
			timers.fire(w, w.cfg.KillGrace)
		},
		"the worker stops at once": func(w *world, worker *Worker, timers *clock, stop func()) {
			stop()
			worker.StopNow()
			timers.fire(w, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Grace = time.Hour
			w.script("p", leavingDeaf)
			p := w.pipe()
			id := w.open(p.path, timeout)
			worker, timers := w.worker(), w.timers.hold()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			wait := w.background(ctx, worker)
			p.begun()
			timers.waitedFor(t, w.cfg.KillGrace)
			happens(w, worker, timers, stop)
			p.ended()
			wait()
			got := w.task(id)
			expect.Equal(t, got.State, tdf.Succeeded)
			expect.Equal(t, got.Current().Exit, "0")
			expect.Equal(t, got.Current().Output, "out\n")
		})
	}
}

// The worker needs longer than until end_before to end the processes that run.sh left behind. It asks Redis for this time.
func TestEndBeforeIsHeldOff(t *testing.T) {
	w := newWorld(t)
	w.cfg.KillGrace = 2 * time.Hour
	w.script("p", leavingDeaf)
	p := w.pipe()
	now := expect.Result(w.store.Now(t.Context())).Value(t)
	id := w.open(p.path, func(d *task.Properties) { d.EndBefore = now.Add(3600) })
	worker, timers := w.worker(), w.timers.hold()
	wait := w.background(t.Context(), worker)
	p.begun()
	eventually(t, "a later deadline", func() bool { return w.task(id).Deadline > now.Add(7200) })
	timers.fire(t, w.cfg.KillGrace)
	p.ended()
	wait()
	got := w.task(id).Current()
	expect.Compare(t, got.Entered[tdf.Executed], "<=", got.Entered[tdf.Running].Add(3600))
	expect.Equal(t, got.Output, "out\n")
}

// A watching store calls a function before each report of a result.
type watching struct {
	broker.DirectStore
	before func()
}

func (s *watching) Execute(ctx context.Context, worker string, results ...rules.Move) ([]redisstate.Outcome, error) {
	s.before()
	return s.DirectStore.Execute(ctx, worker, results...)
}

// A program leaves many files. The worker reports the result before it removes them, and starts the slot's next round
// after that.
func TestFilesAreRemovedAfterTheReport(t *testing.T) {
	w := newWorld(t)
	w.cfg.Concurrency, w.cfg.SleepAfterSuccess = 1, 0
	w.script("p", `#!/bin/sh
ls -d "$TDF_DIR"/../[0-9]*/ | wc -l
i=0
while [ $i -lt 1000 ]; do
	: >"$TDF_DIR/scratch/$i"
	i=$((i+1))
done
`)
	first, second := w.open(""), w.open("")
	var there atomic.Int64
	store := &watching{w.ofStore(), func() {
		if dirs, _ := filepath.Glob(w.path(roundsDir, "*", "*", "[0-9]*", "scratch", "*")); len(dirs) > 0 {
			there.Add(1)
		}
	}}
	stop := w.start(w.workerOn(store))
	for _, id := range []int64{first, second} {
		got := w.executed(id).Current()
		expect.Equal(t, got.Output, "1\n", "task", id)
		expect.Equal(t, got.Error, "", "task", id)
	}
	stop()
	expect.Equal(t, there.Load(), 2, "the files were there at … reports")
	_, err := os.Stat(w.path(roundsDir))
	expect.True(t, os.IsNotExist(err), "the directory of rounds remains", err)
}

// A stopping worker does not wait for ever until the files of a round are removed.
func TestRemovalEndsWithTheWorker(t *testing.T) {
	w := newWorld(t)
	s := newSupervisor(w.worker())
	defer s.removeDirs()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	s.claiming, s.reporting = t.Context(), over
	e := &execution{s: s, task: &task.Task{}}
	var err error
	e.dir, err = s.takeDir(1, rounddir.Before{}, nil)
	must(t, err)
	for _, name := range []string{"file", "scratch/file"} {
		must(t, os.WriteFile(filepath.Join(e.dir.Path(), name), nil, 0o600))
	}
	e.slot = s.takeSlot()
	s.work.Add(1)
	s.leaveSlot(e, true)
	s.pauses.Wait()
	left, err := os.ReadDir(e.dir.Path())
	expect.True(t, len(left) != 0, "the directory is empty", err)
	expect.Equal(t, s.freeSlots(), s.slots(), "slots are free")
}
