package redisstate

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

func inQueue(queue string) tdf.Properties {
	d := define("in " + queue)
	d.Queue = queue
	return d
}

// activityText returns the counts of transitions by queue, and the numbers of spans.
func activityText(t testing.TB, s *Store, most int) string {
	t.Helper()
	var lines []string
	for _, a := range expect.Result(s.Activity(t.Context(), &ActivityCounter{}, most)).Value(t) {
		line := a.Queue + ":"
		for _, tr := range tdf.Transitions {
			if n := a.Counts[transitionName(tr.Verb, tr.To)]; n > 0 {
				line += fmt.Sprintf(" %s %s %d,", tr.Verb, tr.To, n)
			}
		}
		for _, kind := range []string{CountWait, CountRun, CountLife} {
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
	s.KeepCounts()
	var sending sync.WaitGroup
	defer sending.Wait()
	for i := range 100 {
		mustOpen(t, s, inQueue("a"))
		sending.Go(s.sendTally)
		all := expect.Result(s.Activity(t.Context(), &ActivityCounter{}, 10)).Value(t)
		expect.MustLen(t, all, 1, i)
		expect.MustEqual(t, all[0].Counts[transitionName(tdf.VerbOpen, tdf.Open)], int64(i+1), i)
	}
}

// Every transition of a task counts for its queue, whichever script makes it.
func TestActivity(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		s.KeepCounts()
		ctx := t.Context()
		mustOpen(t, s, inQueue("a"), define("x"), define("y"))
		mustOpen(t, s, inQueue("a"), define("cancelled"), define("z"))
		expect.Result(s.Now(ctx)).OK(t) // so that the client knows Redis's clock
		cancel := expect.Result(task(t, s, 5).Cancel()).Value(t)
		mustApply(t, s, cancel, nil)
		claimed := claimFor(t, s, 10, tdf.Offer{Queues: []tdf.QueueShare{{Queue: "a"}, {Queue: tdf.DefaultQueue}}, Programs: true})
		expect.MustTrue(t, len(claimed.Claims) == 5, claimed.Claims)
		for _, c := range claimed.Claims {
			r := tdf.Result{Exit: "0", Started: claimed.Now, Seconds: 2}
			if c.Task.ID == 6 {
				r.Error = "wrong"
			}
			m := expect.Result(c.Task.Execute(c.ID, r)).Value(t)
			expect.Result(s.Execute(ctx, "w", m)).OK(t)
		}
		now := expect.Result(s.Now(ctx)).Value(t)
		moved, others, err := s.SettleUsual(ctx, "server", tdf.UsualSuccess(), now, 10)
		expect.NoError(t, err, moved)
		expect.MustEqual(t, moved, 4)
		expect.MustLen(t, others, 1, moved)
		failed, _ := task(t, s, 6).Settle(now, nil)
		mustApply(t, s, failed, nil)
		again := expect.Result(task(t, s, 6).Reopen()).Value(t)
		mustApply(t, s, again, nil)
		mustApply(t, s, expect.Result(task(t, s, 1).Archive()).Value(t), nil)
		mustApply(t, s, expect.Result(task(t, s, 1).Remove()).Value(t), nil)
		want := "a: open open 2, claim running 2, execute executed 2, succeed succeeded 2, archive archived 1, remove  1, wait:2 run:2 life:2\n" +
			"default: open open 4, claim running 3, execute executed 3, succeed succeeded 2, fail failed 1, cancel expired 1, reopen open 1, wait:3 run:3 life:4"
		expect.Equal(t, activityText(t, s, 10), want, "before the counts are in Redis")
		s.sendTally()
		expect.Equal(t, activityText(t, s, 10), want, "after it")
		other := connect(t, s.Addr, s.Keys.Namespace())
		expect.Equal(t, activityText(t, other, 10), want, "seen by another client")
		upTo, sum := expect.Result(other.Activity(ctx, &ActivityCounter{}, 10)).Value(t)[0].Spans(CountRun)
		expect.MustEqual(t, upTo[3], 0)
		expect.Equal(t, upTo[4], 2)
		expect.Equal(t, sum, 4)
		expect.True(t, s.Redis.TTL(ctx, s.Keys.ActivityOf("a")).Val() > 0, "the counts never expire")
	})
}

// A client whose replies are lost adds each count once.
func TestActivityAfterLostReplies(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	s := connect(t, proxy.Addr, redistest.Namespace(t))
	s.KeepCounts()
	for range 3 {
		s.count("q", transitionName(tdf.VerbOpen, tdf.Open), 7)
		proxy.DropReplies(2, redistest.Scripts)
		s.sendTally()
	}
	expect.Equal(t, activityText(t, s, 10), "q: open open 21, wait:0 run:0 life:0")
}

// A request or a claim that a client repeats is counted once, whichever client carries it out.
func TestRepeatedRequestsCountOnce(t *testing.T) {
	s := newStore(t)
	other := connect(t, s.Addr, s.Keys.Namespace())
	s.KeepCounts()
	other.KeepCounts()
	for _, by := range []*Store{s, other, s} {
		ctx := expect.Result(by.Once(t.Context(), "request", "content", func() error { return nil })).Value(t)
		keyed := define("y")
		keyed.Unique = "k"
		expect.Result(by.Open(ctx, "m", define("x"))).OK(t)
		expect.Result(by.Open(ctx, "m", keyed, define("z"))).OK(t)
		call := expect.Result(by.ClaimCall(t.Context(), "session", 1)).Value(t)
		c := expect.Result(by.Claim(t.Context(), ClaimRequest{Worker: "w", Most: 2, Lease: 60, IDs: "i", Call: call})).Value(t)
		expect.Len(t, c.Claims, 2)
		by.sendTally()
	}
	expect.Equal(t, activityText(t, s, 10), "default: open open 3, claim running 2, wait:2 run:0 life:0")
}

// Close adds the counts that are not in Redis yet, and ends although Redis does not answer.
func TestCloseSendsTheLastCounts(t *testing.T) {
	s := newStore(t)
	closing := connect(t, s.Addr, s.Keys.Namespace())
	closing.KeepCounts()
	mustOpen(t, closing, define("x"))
	must(t, closing.Close())
	expect.Equal(t, activityText(t, s, 10), "default: open open 1, wait:0 run:0 life:0")
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	cut := connect(t, proxy.Addr, s.Keys.Namespace())
	cut.KeepCounts()
	mustOpen(t, cut, define("x"))
	proxy.Cut()
	proxy.Refuse()
	_ = cut.Close()
}

// Of many queues, a counter reads the counts of the busiest at each call, and those of each other queue at the latest at every third call. The counts of all
// other queues together never fall, also while this client adds its own.
func TestActivityAgain(t *testing.T) {
	s := newStore(t)
	s.KeepCounts()
	other := connect(t, s.Addr, s.Keys.Namespace())
	other.KeepCounts()
	name := transitionName(tdf.VerbOpen, tdf.Open)
	queue := func(i int) string { return fmt.Sprintf("q%04d", i) }
	for i := range mostCounted {
		s.count(queue(i), name, int64(1+i))
	}
	s.sendTally()
	var c ActivityCounter
	read := func() map[string]int64 {
		t.Helper()
		all := map[string]int64{}
		for _, a := range expect.Result(s.Activity(t.Context(), &c, 10)).Value(t) {
			all[a.Queue] = a.Counts[name]
		}
		expect.Len(t, all, 11)
		return all
	}
	total, before := int64(mostCounted*(mostCounted+1)/2), read()
	for range 4 {
		for _, by := range []*Store{s, other} {
			for i := 1; i < mostCounted; i += 9 {
				by.count(queue(i), name, 1)
				total++
			}
			by.count(queue(mostCounted-1), name, 1)
			by.count("new"+by.Boot(), name, 1) // counts as other queues, because there are too many
			total += 2
			if by == other {
				by.sendTally()
			}
		}
		for range 2 { // before this client has sent its counts, and after it
			got := read()
			expect.True(t, got[OtherQueues] >= before[OtherQueues], "the counts of other queues fell", before[OtherQueues], got[OtherQueues])
			expect.Equal(t, got[queue(mostCounted-1)], before[queue(mostCounted-1)]+2, "the busiest queue")
			s.sendTally()
			before[OtherQueues] = got[OtherQueues]
		}
		before = read()
	}
	other.count(queue(1), name, 1)
	other.count(queue(mostCounted-500), name, 1)
	other.sendTally()
	for range (mostCounted+othersAtOnce-1)/othersAtOnce - 1 {
		read()
	}
	sum := int64(-2)
	for _, n := range read() {
		sum += n
	}
	expect.Equal(t, sum, total, "each queue had its turn")
}

// A namespace with many queues has counts for some of them, and counts the others together.
func TestActivityOfManyQueues(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		s.KeepCounts()
		name := transitionName(tdf.VerbOpen, tdf.Open)
		for i := range mostCounted + 10 {
			s.count(fmt.Sprintf("q%04d", i), name, 2)
		}
		s.count("busy", name, 5)
		s.sendTally()
		all := expect.Result(s.Activity(t.Context(), &ActivityCounter{}, 5000)).Value(t)
		total := int64(0)
		for _, a := range all {
			total += a.Counts[name]
		}
		expect.Len(t, all, mostCounted+1, total)
		expect.Equal(t, total, 2*(mostCounted+10)+5)
		expect.Equal(t, activityText(t, s, 1), fmt.Sprintf("busy: open open 5, wait:0 run:0 life:0\nother: open open %d, wait:0 run:0 life:0", total-5))
		// A new queue takes the place of one whose counts have expired.
		must(t, s.Redis.Del(context.Background(), s.Keys.ActivityOf("q0000")).Err())
		s.count("new", name, 1)
		s.sendTally()
		expect.Equal(t, s.Redis.HGet(t.Context(), s.Keys.ActivityOf("new"), name).Val(), "1")
	})
}

// Values of other programs in the counts neither stop nor mislead the readers.
func TestForeignActivity(t *testing.T) {
	s := newStore(t)
	s.KeepCounts()
	must(t, s.Redis.HSet(t.Context(), s.Keys.ActivityOf("a"), transitionName(tdf.VerbOpen, tdf.Open), "x", "wait:1", "1").Err())
	must(t, s.Redis.Set(t.Context(), s.Keys.ActivityOf("b"), "text", 0).Err())
	for _, queue := range []string{"a", "b"} {
		s.count(queue, transitionName(tdf.VerbOpen, tdf.Open), 1)
		s.count(queue, transitionName(tdf.VerbClaim, tdf.Running), 1)
	}
	s.sendTally()
	expect.Equal(t, activityText(t, s, 10), "a: claim running 1, wait:1 run:0 life:0")
}
