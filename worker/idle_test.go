package worker

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A new task wakes an idle worker. The worker's sleep would never end by itself in this test.
func TestAnIdleWorkerIsWoken(t *testing.T) {
	w := newWorld(t)
	w.cfg.SleepAfterNoProcessClaimed = 1000 * time.Hour
	w.script("p", good)
	stop := w.start(w.worker())
	eventually(t, "the start", func() bool { return w.workerState() == presence.WorkerWorking })
	for range 5 {
		w.executed(w.open(""))
	}
	stop()
}

func TestATaskThatBecomesDueWakesTheWorker(t *testing.T) {
	w := newWorld(t)
	w.cfg.SleepAfterNoProcessClaimed = 1000 * time.Hour
	w.script("p", good)
	now := expect.Result(w.store.Now(t.Context())).Value(t)
	later := w.open("", func(d *task.Properties) { d.StartAfter = now.Add(1) })
	w.open("", func(d *task.Properties) { d.StartAfter = now.Add(1e6) })
	stop := w.start(w.worker())
	one := w.executed(later)
	r := one.Current()
	expect.True(t, r.Entered[tdf.Running] >= one.StartAfter, "claimed at", r.Entered[tdf.Running], "before", one.StartAfter)
	stop()
}

// A worker that is woken soon after a claim waits for a moment, so that its next claim gets the tasks that are opened meanwhile.
func TestTasksThatAreOpenedOneByOneShareAClaim(t *testing.T) {
	w := newWorld(t)
	w.cfg.SleepAfterNoProcessClaimed, w.cfg.Concurrency = 1000*time.Hour, 4
	end := make(chan struct{}) // no round ends before, because its report would also claim tasks
	worker := w.running(func(context.Context, *Round) (Ended, error) {
		<-end
		return Ended{}, nil
	})
	worker.claimGap = 1000 * time.Hour
	stop := w.start(worker)
	w.open("")
	w.timers.waitedBetween(t, 999*time.Hour, worker.claimGap)
	ids := []int64{w.open(""), w.open(""), w.open("")}
	w.timers.fireBetween(t, 999*time.Hour, worker.claimGap)
	for _, id := range ids {
		eventually(t, "the claim", func() bool { return w.task(id).State == tdf.Running })
	}
	close(end)
	first, _, _ := strings.Cut(w.task(ids[0]).Current().Claim, ".")
	for _, id := range ids {
		claim := w.task(id).Current().Claim
		expect.True(t, strings.HasPrefix(claim, first+"."), "task", id, "has the claim", claim, "and the first task", first)
	}
	stop()
}

// If a worker takes the wake token of a task that it must not run, another worker is still woken.
func TestAnUnwantedTaskWakesAnother(t *testing.T) {
	w := newWorld(t)
	w.cfg.SleepAfterNoProcessClaimed = 1000 * time.Hour
	w.script("p", good)
	stop, stopToo := w.start(w.worker()), w.start(w.named("w2"))
	client := w.client()
	for range 8 {
		id := w.open("", func(d *task.Properties) { d.StartAfter = 9e9 })
		ns, member := w.cfg.Namespace, strconv.FormatInt(id, 10)
		must(t, client.HSet(t.Context(), ns+":task:"+member, "not_on", "w1", "start_after", "0").Err())
		must(t, client.ZAdd(t.Context(), ns+":open", redis.Z{Score: 1, Member: member}).Err())
		must(t, client.LPush(t.Context(), ns+":wake:open", "1").Err())
		expect.Equal(t, w.executed(id).Current().Worker, "w2", "task", id, "was run by")
	}
	stop()
	stopToo()
}

func (w *world) executed(id int64) *task.Task {
	w.Helper()
	eventually(w, "the execution", func() bool { return w.task(id).State == tdf.Executed || w.task(id).State.Settled() })
	return w.task(id)
}

func TestIdle(t *testing.T) {
	shortest, jitter := task.For(shortestIdle), task.For(dueJitter)
	for name, c := range map[string]struct {
		sleep       task.Seconds
		next        task.Time
		least, most task.Seconds
	}{
		"nothing is known":  {2, task.Never, 2, 2},
		"due later":         {2, 1003, 2, 2},
		"due soon":          {2, 1001, 1, 1.001 + jitter},
		"due just then":     {2, 1001.999, 1.999, 2},
		"due now":           {2, 1000, 0.001, 0.001 + jitter},
		"due before":        {2, 900, 0.001, 0.001 + jitter},
		"no sleep":          {0, task.Never, shortest, shortest},
		"no sleep, due now": {0, 1000, 0.001, shortest},
	} {
		w := &Worker{cfg: config.Worker{SleepAfterNoProcessClaimed: c.sleep.Std()}}
		s := supervisorOf(w)
		for range 100 {
			got := task.For(s.idleTime(&redisstate.ClaimResult{Now: 1000, Next: c.next}))
			expect.Compare(t, got, ">=", c.least, name, c.most)
			expect.Compare(t, got, "<=", c.most, name, c.least)
		}
	}
}
