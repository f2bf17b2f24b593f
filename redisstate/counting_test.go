package redisstate_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/counts"
)

func inQueue(queue string) task.Properties {
	d := define("in " + queue)
	d.Queue = queue
	return d
}

// activityText returns the counts of transitions by queue, and the numbers of spans.
func activityText(t testing.TB, s *redisstate.Store, most int) string {
	t.Helper()
	var lines []string
	for _, a := range expect.Result(s.Counters.Activity(t.Context(), &counts.ActivityCounter{}, most)).Value(t) {
		line := a.Queue + ":"
		for _, tr := range rules.Transitions {
			if n := a.Counts[counts.TransitionName(tr.Verb, tr.To)]; n > 0 {
				line += fmt.Sprintf(" %s %s %d,", tr.Verb, tr.To, n)
			}
		}
		for _, kind := range []string{counts.CountWait, counts.CountRun, counts.CountLife} {
			upTo, _ := a.Spans(kind)
			line += fmt.Sprintf(" %s%d", kind, upTo[len(upTo)-1])
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// Counts never fall while they move from the client to Redis, because Prometheus takes a lower number for a restart of the program.
func TestCountsDoNotFall(t *testing.T) {
	s := newStore(t)
	s.Counters.KeepCounts()
	var sending sync.WaitGroup
	defer sending.Wait()
	for i := range 100 {
		mustOpen(t, s, inQueue("a"))
		sending.Go(s.Counters.SendCounts)
		all := expect.Result(s.Counters.Activity(t.Context(), &counts.ActivityCounter{}, 10)).Value(t)
		expect.MustLen(t, all, 1, i)
		expect.MustEqual(t, all[0].Counts[counts.TransitionName(rules.VerbOpen, task.Open)], int64(i+1), i)
	}
}

// Every transition of a task counts for its queue, whichever script makes it.
func TestActivity(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		s.Counters.KeepCounts()
		ctx := t.Context()
		mustOpen(t, s, inQueue("a"), define("x"), define("y"))
		mustOpen(t, s, inQueue("a"), define("cancelled"), define("z"))
		expect.Result(s.Now(ctx)).OK(t) // so that the client knows Redis's clock
		cancel := expect.Result(rules.Cancel(read(t, s, 5))).Value(t)
		mustApply(t, s, cancel, nil)
		claimed := claimFor(t, s, 10, class.Offer{Queues: []class.QueueShare{{Queue: "a"}, {Queue: class.DefaultQueue}}, Programs: true})
		expect.MustTrue(t, len(claimed.Claims) == 5, claimed.Claims)
		for _, c := range claimed.Claims {
			r := rules.Result{Exit: "0", Started: claimed.Now, Seconds: 2}
			if c.Task.ID == 6 {
				r.Error = "wrong"
			}
			m := expect.Result(rules.Execute(c.Task, c.ID, r)).Value(t)
			if c.Task.ID%2 == 1 { // the server settles the others
				m = m.Settled(c.Task, r)
			}
			expect.Result(s.Execute(ctx, "w", m)).OK(t)
		}
		expect.Equal(t, settleMany(t, s), 3)
		again := expect.Result(rules.Reopen(read(t, s, 6))).Value(t)
		mustApply(t, s, again, nil)
		mustApply(t, s, expect.Result(rules.Archive(read(t, s, 1))).Value(t), nil)
		mustApply(t, s, expect.Result(rules.Remove(read(t, s, 1))).Value(t), nil)
		want := "a: open open 2, claim running 2, execute executed 2, succeed succeeded 2, archive archived 1, remove  1, wait:2 run:2 life:2\n" +
			"default: open open 4, claim running 3, execute executed 3, succeed succeeded 2, fail failed 1, cancel expired 1, reopen open 1, wait:3 run:3 life:4"
		expect.Equal(t, activityText(t, s, 10), want, "before the counts are in Redis")
		s.Counters.SendCounts()
		expect.Equal(t, activityText(t, s, 10), want, "after it")
		other := connect(t, s.Conn.Addr, s.Keys.Namespace())
		expect.Equal(t, activityText(t, other, 10), want, "seen by another client")
		upTo, sum := expect.Result(other.Counters.Activity(ctx, &counts.ActivityCounter{}, 10)).Value(t)[0].Spans(counts.CountRun)
		expect.MustEqual(t, upTo[3], 0)
		expect.Equal(t, upTo[4], 2)
		expect.Equal(t, sum, 4)
		expect.True(t, s.Conn.Redis.TTL(ctx, s.Keys.ActivityOf("a")).Val() > 0, "the counts never expire")
	})
}

// A request or a claim that a client repeats is counted once, whichever client carries it out.
func TestRepeatedRequestsCountOnce(t *testing.T) {
	s := newStore(t)
	other := connect(t, s.Conn.Addr, s.Keys.Namespace())
	s.Counters.KeepCounts()
	other.Counters.KeepCounts()
	for _, by := range []*redisstate.Store{s, other, s} {
		ctx := expect.Result(by.Conn.Once(t.Context(), "request", "content", func() error { return nil })).Value(t)
		keyed := define("y")
		keyed.Unique = "k"
		expect.Result(by.Open(ctx, "m", define("x"))).OK(t)
		expect.Result(by.Open(ctx, "m", keyed, define("z"))).OK(t)
		call := expect.Result(by.ClaimCall(t.Context(), "session", 1)).Value(t)
		c := expect.Result(by.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 2, Lease: 60, IDs: "i", Call: call})).Value(t)
		expect.Len(t, c.Claims, 2)
		by.Counters.SendCounts()
	}
	expect.Equal(t, activityText(t, s, 10), "default: open open 3, claim running 2, wait:2 run:0 life:0")
}

// Close adds the counts that are not in Redis yet, and ends although Redis does not answer.
func TestCloseSendsTheLastCounts(t *testing.T) {
	s := newStore(t)
	closing := connect(t, s.Conn.Addr, s.Keys.Namespace())
	closing.Counters.KeepCounts()
	mustOpen(t, closing, define("x"))
	must(t, closing.Close())
	expect.Equal(t, activityText(t, s, 10), "default: open open 1, wait:0 run:0 life:0")
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	cut := connect(t, proxy.Addr, s.Keys.Namespace())
	cut.Counters.KeepCounts()
	mustOpen(t, cut, define("x"))
	proxy.Cut()
	proxy.Refuse()
	_ = cut.Close()
}
