package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/updates"
)

// telling is a program that reports everything that a program can report. Then it waits for a line from the pipe that
// its argument names.
const telling = `#!/bin/sh
cd "$TDF_DIR"
echo "0.25 a quarter" >progress
printf 'one\ntwo\nhal' >updates
echo state >checkpoint.new && mv checkpoint.new checkpoint
echo printed
echo begun >"$1"; read line <"$1"
echo f >>updates
echo "1 all" >progress
i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done
echo more
`

// Reports of a running program arrive with the next renewal. The other reports arrive when the program has ended.
func TestARoundReportsWhileItRuns(t *testing.T) {
	w := newWorld(t)
	w.script("p", telling)
	p := w.pipe()
	id := w.open(p.path)
	before := expect.Result(w.store.Now(t.Context())).Value(t)
	wait := w.background(t.Context(), w.worker())
	p.begun()
	p.ended()
	w.timers.beat(t, "a report", func() bool {
		return w.task(id).Current().Tail != "" && w.task(id).Checkpoint != ""
	})
	one := w.task(id)
	r := one.Current()
	expect.Equal(t, r.Progress, task.Progress{Fraction: 0.25, Text: "a quarter"})
	expect.Equal(t, r.Tail, "printed\n")
	expect.Equal(t, one.Checkpoint, "state\n")
	now := expect.Result(w.store.Now(t.Context())).Value(t)
	// The last output may seem to be earlier than the start of this test, because file systems round times down to the
	// tick of the kernel's clock.
	expect.Compare(t, r.LastOutput, ">=", before.Add(-1))
	expect.Compare(t, r.LastOutput, "<=", now)
	w.updated(id, "0-1 one", "0-2 two")
	p.release()
	wait()
	w.updated(id, "0-1 one", "0-2 two", "0-3 half")
	r = w.finished(id).Current()
	expect.Equal(t, r.Progress, task.Progress{Fraction: 1, Text: "all"})
	expect.Equal(t, r.Tail, "")
	expect.Equal(t, r.Output, "printed\nmore\n")
	expect.Equal(t, r.OutputBytes, 13)
	expect.Compare(t, r.Seconds, ">", 0)
	expect.Compare(t, r.CPUSeconds, ">", 0)
	expect.Equal(t, r.LastOutput, 0)
}

func (w *world) updated(id int64, want ...string) {
	w.Helper()
	all := expect.Result(w.store.Updates.After(w.Context(), id, updates.Update{}, 100)).Value(w)
	var got []string
	for _, u := range all {
		got = append(got, fmt.Sprintf("%d-%d %s", u.Round, u.Number, u.Line))
	}
	expect.Equal(w, strings.Join(got, "\n"), strings.Join(want, "\n"), "updates", got, want)
}

// A round that a user watches reports every second. Secrets in its reports are masked.
func TestARoundThatIsFollowed(t *testing.T) {
	w := newWorld(t)
	secretsOf(0o600)(w)
	w.script("p", "#!/bin/sh\necho \"at $TOKEN\"; echo begun >\"$1\"; read line <\"$1\"\n")
	p := w.pipe()
	id := w.open(p.path)
	worker := w.worker()
	s, end := w.supervisor(worker)
	_, err := s.claimNow(1)
	must(t, err)
	p.begun()
	p.ended()
	next := func() time.Duration {
		expect.Result(s.reportRounds(t.Context(), s.executions(), false)).OK(t)
		at := time.Now()
		return s.nextReport(at, at)
	}
	expect.Equal(t, next(), worker.heartbeatPause(), "without a follower, the next report is in")
	must(t, w.store.Updates.Follow(t.Context(), id))
	expect.Equal(t, next(), followPause, "followed, the next report is in")
	expect.Equal(t, w.task(id).Current().Tail, "at ***\n", "the tail")
	must(t, w.client().Del(t.Context(), w.cfg.Namespace+":follow:1").Err())
	expect.Equal(t, next(), worker.heartbeatPause(), "followed no more, the next report is in")
	p.release()
	end()
}

// resuming is a program that continues to count from its checkpoint. Then it ends as its second argument says.
const resuming = `#!/bin/sh
cd "$TDF_DIR"
n=$(cat checkpoint 2>/dev/null || echo 0)
echo "from $n, before: $(cat last_error 2>/dev/null)"
echo $((n + 1)) >checkpoint.new && mv checkpoint.new checkpoint
[ "$n" = 0 ] || exit 0
echo begun >"$1"
`

const holding = "exec 3>\"$1\"; exec sleep 1000\n"

// The next round gets the checkpoint, even if it runs on another worker, and however the previous round ended.
func TestACheckpointIsThereInTheNextRound(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		end    func(r *round)
		before string // the error of the previous round
	}{
		"failed":    {"echo failed >&2\n", func(*round) {}, "failed\n"},
		"timed out": {holding, func(r *round) { r.timers.fireBetween(r, 15*time.Minute, 17*time.Minute) }, ""},
		"released":  {holding, func(r *round) { r.stop(); r.timers.fire(r, 0) }, ""},
		"lost":      {holding, func(r *round) { r.lose() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Grace = 0
			r := w.begin(resuming+c.script, func(d *task.Properties) { d.Timeout, d.MaxTimeouts, d.MaxFails = 1000, 1, 1 })
			c.end(r)
			r.wait()
			eventually(t, "the second round", func() bool {
				expect.Result(w.newServer().RunOnce(t.Context())).OK(t)
				return w.task(r.id).Round == 1
			})
			w.cfg.Directory = t.TempDir()
			w.script("p", resuming)
			w.runOnce(w.named("w2"))
			one := w.finished(r.id)
			expect.Equal(t, one.State, tdf.Succeeded)
			expect.Equal(t, one.Checkpoint, "2\n")
			expect.Equal(t, one.Current().Worker, "w2")
			before := c.before
			if name == "timed out" {
				before = "timed out: it ran for longer than 1000 s, and printed nothing to stderr"
			}
			want := "from 1, before: " + strings.TrimSuffix(before, "\n") + "\n"
			expect.True(t, one.LastOutput() == want, one.LastOutput(), "want", want)
		})
	}
}

// A round is a running round, on a worker whose timers the test fires.
type round struct {
	*world
	id   int64
	stop context.CancelFunc
	wait func()
}

// begin runs a program, and returns when the program says that it has begun.
func (w *world) begin(script string, change func(*task.Properties)) *round {
	w.Helper()
	w.script("p", script)
	w.timers.hold()
	p := w.pipe()
	r := &round{world: w, id: w.open(p.path, change)}
	ctx, stop := context.WithCancel(w.Context())
	r.stop = stop
	w.Cleanup(stop)
	r.wait = w.background(ctx, w.worker())
	p.begun()
	return r
}

// lose lets the lease run out, and waits until the worker has noticed that its task is lost.
func (r *round) lose() {
	r.Helper()
	r.timers.beat(r, "the checkpoint", func() bool { return r.task(r.id).Checkpoint != "" })
	r.loseLease(r.client(), r.id)
	server := r.newServer()
	eventually(r, "the loss", func() bool {
		expect.Result(server.RunOnce(r.Context())).OK(r)
		return r.task(r.id).Losses == 1
	})
	r.timers.beat(r, "the end of the round", func() bool { return strings.Contains(r.log.String(), "msg=dropped") })
}

// loseLease makes the lease of a running task run out.
func (w *world) loseLease(client *redis.Client, id int64) {
	w.Helper()
	now := expect.Result(w.store.Now(w.Context())).Value(w)
	must(w, client.HSet(w.Context(), w.store.Keys.Task(id), "lease_until", now.String()).Err())
	must(w, client.ZAdd(w.Context(), w.store.Keys.Due(), redis.Z{Score: float64(now), Member: strconv.FormatInt(id, 10)}).Err())
}

func (w *world) named(name string) *Worker {
	w.Helper()
	return expect.Result(New(name, w.cfg, withStore(w.ofStore()), WithLog(w.logger()))).Value(w)
}

// The file last_error contains the error of the previous round, never of an earlier round.
func TestLastError(t *testing.T) {
	w := newWorld(t)
	w.cfg.SleepAfterFailure = 0
	w.script("p", "#!/bin/sh\ncat \"$TDF_DIR/last_error\" 2>/dev/null\necho \"round $TDF_ROUND\" >&2\n")
	id := w.open("", func(d *task.Properties) { d.MaxFails = 2 })
	stop := w.start(w.worker())
	one := w.finished(id)
	for i, want := range []string{"", "round 0\n", "round 1\n"} {
		expect.Equal(t, one.Rounds.At(i).Output, want, "round", i)
	}
	stop()
	_, err := os.Lstat(w.path(roundsDir))
	expect.True(t, os.IsNotExist(err), "the directory of rounds", err)
}

// A worker never claims more tasks than it has free slots, whether rounds succeed or fail.
func TestClaimsOnlyForFreeSlots(t *testing.T) {
	for name, failing := range map[string]int64{"all succeed": 1 << 40, "some fail": 5} {
		t.Run(name, func(t *testing.T) {
			const slots, tasks = 24, 1000
			w := newWorld(t)
			w.cfg.Concurrency, w.cfg.SleepAfterFailure = slots, 0
			for range tasks {
				w.open("", forHandler("p"))
			}
			var running, most, done atomic.Int64
			worker := w.worker(Handle("p", func(context.Context, *Round) error {
				n := running.Add(1)
				defer running.Add(-1)
				for before := most.Load(); n > before && !most.CompareAndSwap(before, n); before = most.Load() {
				}
				if done.Add(1)%failing == 0 {
					return errors.New("failed")
				}
				return nil
			}))
			client := w.client()
			stop := w.start(worker)
			eventually(t, "the end of all tasks", func() bool {
				return client.ZCard(t.Context(), w.store.Keys.List(tdf.Succeeded)).Val()+
					client.ZCard(t.Context(), w.store.Keys.List(tdf.Failed)).Val() == tasks
			})
			stop()
			expect.Compare(t, most.Load(), "<=", slots, tasks, "tasks")
			expect.Equal(t, done.Load(), tasks, slots)
		})
	}
}

// renewing is a store that counts the calls of Renew.
type renewing struct {
	broker.DirectStore
	calls atomic.Int64
}

func (r *renewing) Renew(ctx context.Context, lease task.Seconds, renewals ...redisstate.LeaseRenewal) (redisstate.RenewResult, error) {
	r.calls.Add(1)
	return r.DirectStore.Renew(ctx, lease, renewals...)
}

// If a task is lost while its round has much to report, the worker does not repeat the report.
func TestLostRoundReportsOnce(t *testing.T) {
	w := newWorld(t)
	w.script("p", "#!/bin/sh\necho begun >\"$1\"; read line <\"$1\"; seq 1 5000 >$TDF_DIR/updates\n")
	p := w.pipe()
	id := w.open(p.path)
	store := &renewing{DirectStore: w.ofStore()}
	wait := w.background(t.Context(), w.workerOn(store))
	p.begun()
	p.ended()
	w.requeue(id)
	p.release()
	wait()
	n := store.calls.Load()
	expect.True(t, n <= 3, n, "renewals")
}

// Even many updates of a round arrive in a few calls.
func TestAllUpdatesArrive(t *testing.T) {
	w := newWorld(t)
	w.script("p", "#!/bin/sh\nseq 1 5000 >$TDF_DIR/updates\n")
	id := w.open("")
	store := &renewing{DirectStore: w.ofStore()}
	w.runOnce(w.workerOn(store))
	all := expect.Result(w.store.Updates.After(t.Context(), id, updates.Update{}, 10_000)).Value(t)
	n := store.calls.Load()
	expect.MustLen(t, all, 5000, n, "calls")
	expect.MustEqual(t, all[4999].Number, 5000, n, "calls")
	expect.Equal(t, all[4999].Line, "5000", n, "calls")
	expect.Compare(t, n, "<=", 10)
}

// The last output of a released round is reported.
func TestReleasedRoundKeepsItsTail(t *testing.T) {
	w := newWorld(t)
	w.cfg.Grace = 0
	w.script("p", "#!/bin/sh\necho printed; echo begun >\"$1\"; exec sleep 1000\n")
	p := w.pipe()
	id := w.open(p.path)
	ctx, stop := context.WithCancel(t.Context())
	wait := w.background(ctx, w.worker())
	p.begun()
	stop()
	wait()
	one := w.task(id)
	expect.Equal(t, one.State, tdf.Open)
	expect.Equal(t, one.Releases, 1)
	expect.Equal(t, one.Rounds.At(0).Tail, "printed\n")
}
