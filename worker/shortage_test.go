package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

func TestSlotsWithinTheLimitOfOpenFiles(t *testing.T) {
	for _, c := range []struct {
		limit        uint64
		wanted, want int
	}{{10, 100, 1}, {256, 100, 12}, {256, 8, 8}, {1024, 300, 60}, {1 << 20, 1000, 1000}, {^uint64(0), 1000, 1000}} {
		expect.Equal(t, slotsWithin(c.limit, c.wanted), c.want, c.limit, c.wanted)
	}
	w := newWorld(t)
	w.cfg.Concurrency = 100
	worker := w.worker()
	worker.limitSlots(256)
	expect.Equal(t, worker.slots(), 12)
	w.logged("fewer slots than configured")
}

// Go raises the soft limit of open files of this process, but programs get the one with which it was started.
func TestProgramsGetTheSoftLimit(t *testing.T) {
	want := string(expect.Result(exec.Command("/bin/sh", "-c", "ulimit -Sn").Output()).Value(t))
	w := newWorld(t)
	w.script("p", "ulimit -Sn\n")
	id := w.open("")
	w.runOnce(w.worker())
	expect.Equal(t, w.finished(id).LastOutput(), want)
}

// The pauses of a slot grow until a round ends in another way.
func TestPausesAfterShortages(t *testing.T) {
	s := newShortages("w1", func() {})
	now := time.Unix(1000, 0)
	lack := asShortage(fmt.Errorf("open the file: %w", syscall.EMFILE))
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		expect.Equal(t, s.ended(1, lack, now), want)
	}
	expect.Equal(t, s.ended(2, asShortage(Unfit(syscall.ENOSPC)), now), time.Second)
	for range 10 {
		s.ended(3, lack, now)
	}
	expect.Equal(t, s.ended(3, lack, now), longestShortPause)
	expect.Equal(t, s.remark(4),
		"3 of 4 slots pause: open the file: too many open files; raise the limit of open files of w1 (ulimit -n, LimitNOFILE), or lower its concurrency")
	for slot, cause := range map[int]error{1: nil, 2: errTimedOut, 3: Unfit(errors.New("no interpreter"))} {
		expect.Equal(t, s.ended(slot, cause, now), time.Duration(0))
	}
	expect.Equal(t, s.remark(4), "")
}

// What the worker lacks is not charged to the task, however often.
func TestAShortageIsNotChargedToTheTask(t *testing.T) {
	w := newWorld(t)
	w.script("p", good)
	w.smallDisk()
	w.script("p", good)
	w.fill()
	id := w.open("")
	worker := w.worker()
	for range 5 {
		w.runOnce(worker)
		got := w.task(id)
		expect.Equal(t, got.State, tdf.Open)
		expect.Equal(t, got.UnfitHosts, 0)
		expect.Equal(t, got.Fails, 0)
	}
	expect.Len(t, w.client().Keys(t.Context(), w.store.Keys.Failing()).Val(), 0, "a full disk counts for no program")
	expect.Contains(t, worker.info(presence.WorkerWorking).Shortage, "1 of 1 slots pause: ")
	must(t, os.RemoveAll(w.path("filler")))
	w.runOnce(worker)
	expect.Equal(t, w.finished(id).State, tdf.Succeeded)
	expect.Equal(t, worker.info(presence.WorkerWorking).Shortage, "")
}

// A round during which the disk was full goes to another host, even if the program did not notice. It is never charged to the task.
func TestDiskFullDuringARound(t *testing.T) {
	for _, exit := range []string{"0", "1"} {
		w := newWorld(t)
		w.smallDisk()
		w.script("p", "#!/bin/sh\nhead -c 5000000 /dev/zero 2>/dev/null\nexit "+exit+"\n")
		id := w.open("", failOn(tdf.FailOnExit))
		worker := w.worker()
		for range 5 {
			w.runOnce(worker)
			got := w.task(id)
			expect.Equal(t, got.State, tdf.Open, exit)
			expect.Equal(t, got.UnfitHosts, 0, exit)
			expect.Equal(t, got.Fails, 0, exit)
		}
		expect.Contains(t, w.task(id).Log, "the worker's disk is full, so output of the round may be cut: ")
	}
}

// A worker that shall end on a full disk ends after a second attempt to start a round, but not while another round runs.
func TestEndOnFullDisk(t *testing.T) {
	w := newWorld(t)
	w.cfg.Concurrency = 2
	var attempts atomic.Int64
	timers, running, end := w.timers.hold(), make(chan struct{}), make(chan struct{})
	worker := w.worker(WithEndOnFullDisk(), WithRunner(goRunner(func(_ context.Context, r *Round) (Ended, error) {
		if r.Input == "runs" {
			close(running)
			<-end
			return Ended{Exit: "0"}, nil
		}
		attempts.Add(1)
		return Ended{}, asShortage(Unfit(&os.PathError{Op: "write", Path: "args", Err: syscall.ENOSPC}))
	})))
	w.open("runs")
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(t.Context()) }()
	<-running
	w.open("short")
	eventually(t, "the second attempt", func() bool {
		timers.expire(firstShortPause)
		return attempts.Load() == 2
	})
	timers.waitedFor(t, 2*firstShortPause)
	expect.Len(t, ended, 0)
	close(end)
	eventually(t, "the end of the worker", func() bool {
		for pause := 2 * firstShortPause; pause < longestShortPause; pause *= 2 {
			timers.expire(pause)
		}
		return len(ended) > 0
	})
	err := <-ended
	expect.Fails(t, err, "no round can run: the worker's disk is full: write args: no space left on device")
	expect.True(t, errors.Is(err, syscall.ENOSPC), err)
}
