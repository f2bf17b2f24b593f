package redisstate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/redisstate"
)

// keptWorker claims for a worker with 8 cores, of which some are free.
func keptWorker(t testing.TB, s *redisstate.Store, name string, free string, queues ...string) redisstate.ClaimResult {
	t.Helper()
	o := offerOf(queues...)
	r := redisstate.ClaimParams{Worker: name, Most: 1, Lease: 60, Offer: &o, Free: capacities(t, free, 8), Whole: capacities(t, "cpus=8", 8)}
	return expect.Result(s.Claim(t.Context(), r)).Value(t)
}

// minuteLater makes all open tasks look as if they had become due a minute earlier.
func minuteLater(t testing.TB, s *redisstate.Store) {
	redistest.Age(t, s.Conn.Redis, s.Keys.Key(""), 61)
}

// small opens tasks that fit everywhere.
func small(t testing.TB, s *redisstate.Store, n int) {
	t.Helper()
	for range n {
		mustOpen(t, s, asking(t, "cpus=1"))
	}
}

// A task that has been the first one for a minute keeps one worker, which claims nothing that it needs until it fits.
func TestBlockedTaskKeepsAWorker(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		big := mustOpen(t, s, asking(t, "cpus=8"))[0]
		small(t, s, 9)
		expect.Equal(t, requests(keptWorker(t, s, "a", "cpus=2")), []string{"cpus=1"}, "the big task has not waited")
		expect.Equal(t, requests(keptWorker(t, s, "b", "cpus=2")), []string{"cpus=1"})
		minuteLater(t, s)
		c := keptWorker(t, s, "a", "cpus=1")
		expect.Len(t, c.Claims, 0, "a is kept")
		expect.Compare(t, c.Next, "<=", c.Now+20, "a claims again in time")
		expect.Equal(t, requests(keptWorker(t, s, "b", "cpus=1")), []string{"cpus=1"}, "b is not")
		expect.Len(t, keptWorker(t, s, "a", "cpus=7").Claims, 0)
		expect.Equal(t, claimedIDs(keptWorker(t, s, "a", "cpus=8")), []int64{big})
		c = keptWorker(t, s, "a", "cpus=4")
		if len(c.Claims) == 0 {
			c = keptWorker(t, s, "a", "cpus=4")
		}
		expect.Equal(t, requests(c), []string{"cpus=1"}, "a is free again")
	})
}

// If another worker runs the task, the kept one goes on. If the kept worker dies, another is kept after a minute.
func TestKeptWorkerIsReleased(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		big := mustOpen(t, s, asking(t, "cpus=8"))[0]
		small(t, s, 9)
		keptWorker(t, s, "a", "cpus=2")
		minuteLater(t, s)
		expect.Len(t, keptWorker(t, s, "a", "cpus=2").Claims, 0)
		expect.Equal(t, requests(keptWorker(t, s, "b", "cpus=2")), []string{"cpus=1"})
		expect.NoError(t, s.Conn.Redis.Del(t.Context(), s.Keys.Kept()).Err())
		expect.Len(t, keptWorker(t, s, "b", "cpus=2").Claims, 0, "a has not claimed for a minute")
		expect.Equal(t, claimedIDs(keptWorker(t, s, "c", "cpus=8")), []int64{big})
		expect.Equal(t, requests(keptWorker(t, s, "b", "cpus=2")), []string{"cpus=1"})
	})
}

// A kept worker still claims tasks that come before.
func TestKeptWorkerAndOrder(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		mustOpen(t, s, asking(t, "cpus=8"))
		other := asking(t, "cpus=1")
		other.Queue = "other"
		mustOpen(t, s, other)
		keptWorker(t, s, "a", "cpus=0.5", class.DefaultQueue, "other")
		minuteLater(t, s)
		expect.Len(t, keptWorker(t, s, "a", "cpus=2", class.DefaultQueue, "other").Claims, 0)
		expect.Len(t, keptWorker(t, s, "a", "cpus=2", "other", class.DefaultQueue).Claims, 0, "in any order of the queues")
		urgent := asking(t, "cpus=2")
		urgent.Priority = 1
		id := mustOpen(t, s, urgent)
		expect.Equal(t, claimedIDs(keptWorker(t, s, "a", "cpus=2", "other", class.DefaultQueue)), id)
	})
}

// A kept worker keeps back only what the blocked task takes, also in its other queues.
func TestKeptWorkerServesTheRest(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		licensed := mustOpen(t, s, asking(t, "cpus=1 licence=1"))[0]
		other := asking(t, "cpus=1")
		other.Queue = "other"
		mustOpen(t, s, other, other)
		small(t, s, 9)
		claim := func(cores string, licences int64, queues ...string) redisstate.ClaimResult {
			o := offerOf(queues...)
			r := redisstate.ClaimParams{Worker: "a", Most: 1, Lease: 60, Offer: &o, Whole: capacities(t, "cpus=4 licence=1", 8)}
			r.Free = capacities(t, cores+" licence=1", 8)
			for i := range r.Free {
				if r.Free[i].Name == "licence" {
					r.Free[i] = class.CapacityOf(class.Amount{Name: "licence", Units: licences * class.Scale})
				}
			}
			return expect.Result(s.Claim(t.Context(), r)).Value(t)
		}
		expect.Equal(t, requests(claim("cpus=3", 0, class.DefaultQueue)), []string{"cpus=1"}, "the task has not waited")
		minuteLater(t, s)
		c := claim("cpus=3", 0, class.DefaultQueue)
		expect.Equal(t, requests(c), []string{"cpus=1"}, "of 3 cores, one is kept back")
		expect.True(t, c.Kept)
		kept := expect.Result(s.Kept(t.Context(), []string{"a"})).Value(t)
		expect.MustLen(t, kept, 1)
		expect.Equal(t, kept[0].Worker, "a")
		expect.Equal(t, kept[0].Task, licensed)
		both := []string{"other", class.DefaultQueue}
		expect.Equal(t, requests(claim("cpus=2", 0, both...)), []string{"cpus=1"}, "from the other queue")
		expect.Len(t, claim("cpus=1", 0, both...).Claims, 0)
		expect.Equal(t, claimedIDs(claim("cpus=1", 1, both...)), []int64{licensed})
	})
}

// A task that no such worker may run, or that does not fit in the whole of it, keeps no worker.
func TestUnsuitableTaskKeepsNoWorker(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		mustOpen(t, s, asking(t, "cpus=9"))
		mustOpen(t, s, asking(t, "tpus=1"))
		excluded := mustOpen(t, s, asking(t, "cpus=7"))[0]
		expect.NoError(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(excluded), "not_on", "a").Err())
		small(t, s, 5)
		for range 2 {
			expect.Equal(t, requests(keptWorker(t, s, "a", "cpus=2")), []string{"cpus=1"})
			minuteLater(t, s)
		}
		expect.Equal(t, expect.Result(s.Conn.Redis.Exists(t.Context(), s.Keys.Kept()).Result()).Value(t), 0)
	})
}

// A task that asks for nothing needs a whole core. Tasks with half a core do not keep it waiting.
func TestPlainTaskKeepsAWorker(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		plain := mustOpen(t, s, define("x"))[0]
		for range 4 {
			mustOpen(t, s, asking(t, "cpus=0.5"))
		}
		half := func(free int64) redisstate.ClaimResult {
			c := capacities(t, "cpus=1", 8)
			c[0].Whole, c[0].Parts = 0, []int64{free}
			if free == class.Scale {
				c[0].Whole, c[0].Parts = 1, nil
			}
			r := redisstate.ClaimParams{Worker: "a", Most: 1, Lease: 60, Free: c, Whole: capacities(t, "cpus=1", 8)}
			return expect.Result(s.Claim(t.Context(), r)).Value(t)
		}
		expect.Equal(t, requests(half(5000)), []string{"cpus=0.5"})
		minuteLater(t, s)
		expect.Len(t, half(5000).Claims, 0)
		keptFor := func() int64 {
			t.Helper()
			kept := expect.Result(s.Kept(t.Context(), []string{"a"})).Value(t)
			expect.MustLen(t, kept, 1)
			return kept[0].Task
		}
		expect.Equal(t, keptFor(), plain)
		urgent := asking(t, "cpus=0.5")
		urgent.Priority = 1
		mustOpen(t, s, urgent)
		expect.Equal(t, requests(half(5000)), []string{"cpus=0.5"})
		expect.Equal(t, keptFor(), plain, "after a claim that does not come to the task")
		low, high := define("low"), define("high")
		low.Priority, high.Priority = -1, 1
		mustOpen(t, s, low)
		expect.Equal(t, keptFor(), plain)
		before := mustOpen(t, s, high)[0]
		expect.Equal(t, keptFor(), before, "a plain task with a higher priority comes first")
		mustMove(t, s, before, rules.Cancel)
		expect.Equal(t, claimedIDs(half(10_000)), []int64{plain})
	})
}

// Foreign values of the keys do no harm.
func TestForeignKeepings(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		for _, text := range []string{"", "x", "1 b", "nan 1 b", "1 nan b", "1 9e99 b"} {
			big := mustOpen(t, s, asking(t, "cpus=8"))[0]
			id := mustOpen(t, s, asking(t, "cpus=1"))
			must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Kept(), "resources=cpus:80000", text).Err())
			expect.Equal(t, claimedIDs(keptWorker(t, s, "b", "cpus=2")), id, text)
			mustMove(t, s, big, rules.Cancel)
		}
		must(t, s.Conn.Redis.Set(t.Context(), s.Keys.Kept(), "not a hash", 0).Err())
		id := mustOpen(t, s, asking(t, "cpus=1"))
		expect.Equal(t, claimedIDs(keptWorker(t, s, "a", "cpus=2")), id)
	})
}

// After an hour, a kept worker claims what it has kept back, because a round that it runs may never end.
func TestKeptForAnHour(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		mustOpen(t, s, asking(t, "cpus=8"))
		small(t, s, 9)
		minuteLater(t, s)
		expect.True(t, keptWorker(t, s, "a", "cpus=2").Kept)
		now, name := clockOf(t, s), "resources=cpus:80000"
		must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Kept(), name, fmt.Sprint(now.Add(-3601), " ", now.Add(60), " a")).Err())
		c := keptWorker(t, s, "a", "cpus=2")
		expect.Len(t, c.Claims, 0)
		expect.True(t, c.More, "the next claim gets the other tasks")
		for _, worker := range []string{"a", "b"} {
			expect.Equal(t, requests(keptWorker(t, s, worker, "cpus=2")), []string{"cpus=1"}, worker)
		}
		rests := strings.Fields(s.Conn.Redis.HGet(t.Context(), s.Keys.Kept(), name).Val())
		expect.Compare(t, rests[1], ">", now.Add(500).String())
	})
}
