package worker

import (
	"context"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
)

// A user requeues a running task. The worker then ends the program, and writes nothing to the task.
func TestALostTaskIsDropped(t *testing.T) {
	for _, fetching := range []bool{false, true} {
		t.Run(map[bool]string{false: "running", true: "fetching"}[fetching], func(t *testing.T) {
			w := newWorld(t)
			p := w.pipe()
			change := func(*task.Properties) {}
			if fetching {
				change = from(w.archive("run.sh", good, "setup.sh", "#!/bin/sh\nexec 3>"+p.path+"; echo begun >&3; sleep 1000"))
			} else {
				w.script("p", waiting)
			}
			id := w.open(p.path, change)
			wait := w.background(t.Context(), w.worker())
			p.begun()
			w.requeue(id)
			w.timers.beat(t, "the loss", func() bool { return strings.Contains(w.log.String(), "msg=dropped") })
			p.ended()
			wait()
			one := w.task(id)
			r := one.Rounds.At(0)
			expect.Equal(t, one.State, tdf.Open)
			expect.Equal(t, one.Round, 1)
			expect.Equal(t, r.Output+r.Error+r.Exit, "")
			w.logged(`is open in round 1`)
		})
	}
}

func TestTheLeaseIsRenewed(t *testing.T) {
	w := newWorld(t)
	w.script("p", waiting)
	p := w.pipe()
	id := w.open(p.path)
	ctx, stop := context.WithCancel(t.Context())
	worker := w.worker()
	wait := w.background(ctx, worker)
	p.begun()
	for range 3 {
		before := w.task(id).LeaseUntil
		w.timers.beat(t, "a renewal", func() bool { return w.task(id).LeaseUntil > before })
	}
	worker.StopNow()
	stop()
	wait()
}

// The timeout counts from the start of the program, not from the start of the fetch.
func TestTheTimeoutCountsFromTheProgram(t *testing.T) {
	w := newWorld(t)
	p := w.pipe()
	id := w.open(p.path, timeout, from(w.archive("run.sh", waiting, "setup.sh", "#!/bin/sh\nread line <"+p.path+" || :\n")))
	worker := w.worker()
	ctx, stop := context.WithCancel(t.Context())
	wait := w.background(ctx, worker)
	eventually(t, "the fetch", func() bool { return w.task(id).Deadline > 0 && w.task(id).State == tdf.Running })
	claimed := w.task(id)
	p.release()
	p.begun()
	begun := w.task(id)
	r := begun.Current()
	expect.NotEqual(t, r.Started, 0)
	expect.Equal(t, begun.Deadline, r.Started.Add(1000))
	expect.Equal(t, claimed.Current().Started, 0)
	worker.StopNow()
	stop()
	wait()
}

// The last report does not wait for the loop that renews leases, which may wait for Redis.
func TestReportDoesNotWaitForRenewals(t *testing.T) {
	w := newWorld(t)
	s, end := w.worker().supervise(t.Context())
	defer end()
	s.reportingLive <- struct{}{}
	defer func() { <-s.reportingLive }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.Result(s.reportRounds(ctx, nil, true)).FailsWith(t, context.Canceled)
}

// On a slow link, a large checkpoint takes longer than a lease. The worker still renews the leases of all its tasks,
// while the round runs and after it has ended.
func TestLargeReportsDelayNoRenewal(t *testing.T) {
	for _, name := range []string{"running", "ended"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Concurrency = 2
			proxy := redistest.NewProxy(t, redistest.Shared(t))
			release := make(chan struct{})
			worker := w.workerOn(broker.WholeOf(w.connect(proxy.Addr)), Handle("large", func(_ context.Context, r *Round) error {
				proxy.Limit(2 << 10)
				err := r.SetCheckpoint(make([]byte, 1<<20)) // never arrives, unless the proxy resumes
				if name == "running" {
					<-release
				}
				return err
			}), Handle("small", func(context.Context, *Round) error {
				<-release
				return nil
			}))
			small, large := w.open("", forHandler("small")), w.open("", forHandler("large"))
			s, end := w.supervisor(worker)
			_, err := s.claimNow(2)
			must(t, err)
			for range 3 {
				for _, id := range []int64{small, large} {
					before := w.task(id).LeaseUntil
					w.timers.beat(t, "a renewal", func() bool { return w.task(id).LeaseUntil > before })
				}
			}
			expect.Equal(t, len(w.task(large).Checkpoint), 0, "a checkpoint of … bytes arrived over the slow link")
			proxy.Resume()
			close(release)
			end()
			for _, id := range []int64{small, large} {
				got := w.finished(id)
				expect.Equal(t, got.State, tdf.Succeeded, id)
				expect.Equal(t, got.Losses, 0, id)
				expect.Len(t, got.Checkpoint, map[int64]int{large: 1 << 20}[id], id)
			}
		})
	}
}
