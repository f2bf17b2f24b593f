package server

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

func limitedTask() tdf.Properties {
	d := define()
	d.LimitKey = "db"
	return d
}

func (s *site) limit(l tdf.Limit) {
	s.Helper()
	if err := s.store.SetLimit(s.Context(), "db", l); err != nil {
		s.Fatal(err)
	}
}

// claimAll claims all tasks of the given queues that may run, and returns their ids.
func (s *site) claimAll(queues ...string) (ids []int64) {
	s.Helper()
	request := redisstate.ClaimRequest{Worker: "w", Most: 100, Lease: 60}
	offer := tdf.Offer{Programs: true}
	for _, q := range queues {
		offer.Queues = append(offer.Queues, tdf.QueueShare{Queue: q})
	}
	request.Offer = &offer
	for more := true; more; {
		c, err := s.store.Claim(s.Context(), request)
		if err != nil {
			s.Fatal(err)
		}
		for _, claim := range c.Claims {
			ids = append(ids, claim.Task.ID)
		}
		more = c.More || len(c.Claims) == request.Most
	}
	return ids
}

// A place that a lost worker leaves goes to the oldest waiting task, in the same round of the server.
func TestPlaceOfLostWorkerIsUsed(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		s.limit(tdf.Limit{AtMost: 1})
		s.open(limitedTask(), limitedTask(), limitedTask())
		s.claim(1e-6)
		if got := s.claimAll("default"); len(got) > 0 {
			t.Fatalf("claimed %d", got)
		}
		done := s.round()
		if done["reopened"] != 1 || done["returned"] != 1 {
			t.Errorf("the round did %v", done)
		}
		if got := s.claimAll("default"); !slices.Equal(got, []int64{2}) {
			t.Errorf("claimed %d", got)
		}
		s.checkConsistent()
	})
}

// Waiting tasks of a paused queue keep no other task waiting. When the pause ends, they wait again, in their order.
func TestPausedTasksKeepNobodyWaiting(t *testing.T) {
	t.Parallel()
	onReal(t, func(s *site) {
		s.limit(tdf.Limit{AtMost: 0})
		var all []tdf.Properties
		for range redisstate.MostReturned + 10 {
			d := limitedTask()
			d.Queue = "night"
			all = append(all, d)
		}
		night := s.open(all...)
		day := s.open(limitedTask())
		if got := s.claimAll("night", "default"); len(got) > 0 {
			t.Fatalf("claimed %d", got)
		}
		pause := tdf.Pausable{Queue: "night"}
		if _, err := s.store.Pause(s.Context(), "ann", pause); err != nil {
			t.Fatal(err)
		}
		s.limit(tdf.Limit{AtMost: 2})
		s.round()
		if got := s.claimAll("night", "default"); !slices.Equal(got, day) {
			t.Errorf("claimed %d, want %d", got, day)
		}
		if _, err := s.store.Resume(s.Context(), "ann", pause); err != nil {
			t.Fatal(err)
		}
		s.round()
		if got := s.claimAll("night", "default"); !slices.Equal(got, night[:1]) {
			t.Errorf("claimed %d, want %d", got, night[0])
		}
		s.checkConsistent()
	})
}

// While the whole namespace is paused, the waiting tasks stay where they are.
func TestPausedNamespaceReturnsNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		s.limit(tdf.Limit{AtMost: 0})
		ids := s.open(limitedTask(), limitedTask())
		s.claimAll("default")
		if _, err := s.store.Pause(s.Context(), "ann", tdf.Pausable{}); err != nil {
			t.Fatal(err)
		}
		s.limit(tdf.Limit{AtMost: 1})
		if done := s.round(); done["returned"] != 0 {
			t.Errorf("the round did %v", done)
		}
		if _, err := s.store.Resume(s.Context(), "ann", tdf.Pausable{}); err != nil {
			t.Fatal(err)
		}
		s.limit(tdf.Limit{AtMost: 2}) // a new limit makes the key due
		if done := s.round(); done["returned"] != 2 {
			t.Errorf("the round did %v", done)
		}
		if got := s.claimAll("default"); !slices.Equal(got, ids) {
			t.Errorf("claimed %d", got)
		}
	})
}

// With a running server, all tasks of a key get their turn, whether the limit is a number or a rate.
func TestRunReturnsWaitingTasks(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]tdf.Limit{"number": {AtMost: 2}, "rate": {AtMost: tdf.AnyNumber, Starts: 3, Per: 0.02}} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(s *site) {
				const tasks = 30
				s.limit(limit)
				var all []tdf.Properties
				for range tasks {
					all = append(all, limitedTask())
				}
				s.open(all...)
				ctx, stop := context.WithCancel(s.Context())
				defer stop()
				var running sync.WaitGroup
				running.Go(func() { s.server.Run(ctx) })
				waker := s.store.WakeWorker(nil)
				defer waker.Close()
				for done := 0; done < tasks; {
					c, err := s.store.Claim(s.Context(), redisstate.ClaimRequest{Worker: "w", Most: 10, Lease: 60})
					if err != nil {
						t.Error(err)
						break
					}
					if n := len(c.Claims); limit.AtMost != tdf.AnyNumber && n > limit.AtMost {
						t.Errorf("%d tasks run", n)
					}
					for _, claim := range c.Claims {
						if err := s.execute(claim, tdf.Result{Exit: "0"}); err != nil {
							t.Error(err)
						}
						done++
					}
					if len(c.Claims) == 0 && !c.More {
						waker.Wait(s.Context(), limitTestPatience)
					}
				}
				stop()
				running.Wait()
			})
		})
	}
}

// limitTestPatience is the time after which a test claims again, if no wake token has come.
const limitTestPatience = heartbeatPause

// A round of the server returns the tasks of many keys, in batches.
func TestTasksOfManyKeysReturn(t *testing.T) {
	t.Parallel()
	onReal(t, func(s *site) {
		const keys, each = 120, 12
		var all []tdf.Properties
		for i := range keys * each {
			d := limitedTask()
			d.LimitKey = "k" + strconv.Itoa(i%keys)
			all = append(all, d)
			if i < keys {
				if err := s.store.SetLimit(s.Context(), d.LimitKey, tdf.Limit{AtMost: 0}); err != nil {
					t.Fatal(err)
				}
			}
		}
		s.open(all...)
		if got := s.claimAll("default"); len(got) > 0 {
			t.Fatalf("claimed %d", got)
		}
		for i := range keys {
			if err := s.store.SetLimit(s.Context(), "k"+strconv.Itoa(i), tdf.Limit{AtMost: each - 1}); err != nil {
				t.Fatal(err)
			}
		}
		if done := s.round(); done["returned"] != keys*(each-1) {
			t.Errorf("the round did %v", done)
		}
		if got := s.claimAll("default"); len(got) != keys*(each-1) {
			t.Errorf("%d were claimed", len(got))
		}
		s.checkConsistent()
	})
}

func TestFitting(t *testing.T) {
	t.Parallel()
	const most = redisstate.MostReturned
	for _, c := range []struct {
		tasks []int
		want  int
	}{{nil, 0}, {[]int{0, 0}, 2}, {[]int{most}, 1}, {[]int{most, 1}, 1}, {[]int{1, most}, 1}, {[]int{1, most - 1, 0, 1}, 3}} {
		if got := fitting(c.tasks); got != c.want {
			t.Errorf("%v: %d, want %d", c.tasks, got, c.want)
		}
	}
}

// The limit counts a task that a worker of the original TDF runs, for example because a user put it into the list open, after the audit has seen the task. When the task has ended, a
// check notices that the task no longer runs.
func TestLimitCountsTasksOfOriginalWorkers(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		s.limit(tdf.Limit{AtMost: 1})
		s.open(limitedTask(), limitedTask())
		s.do("ZREM", "$open:placed", "1")
		s.do("ZREM", "$open:default", "1")
		s.do("ZADD", "$running", s.now().String(), "1")
		s.do("HSET", "$task:1", "state", "running", "0:running", s.now().String(), "0:worker", "original")
		s.round()
		if got := s.claimAll("default"); len(got) > 0 {
			t.Errorf("claimed %d beside the task of the original's worker", got)
		}
		s.do("ZREM", "$running", "1")
		s.do("ZADD", "$executed", s.now().String(), "1")
		s.do("HSET", "$task:1", "state", "executed", "0:executed", s.now().String(), "0:output", "", "0:error", "")
		returned := s.round()["returned"]
		s.do("ZADD", "$limits_due", "XX", "1", "db") // the next check is due
		if returned += s.round()["returned"]; returned != 1 {
			t.Errorf("%d tasks returned", returned)
		}
		if got := s.claimAll("default"); !slices.Equal(got, []int64{2}) {
			t.Errorf("claimed %d", got)
		}
		s.checkConsistent()
	})
}

// A stale member of the place of a key, from another program, does not keep the tasks behind it waiting.
func TestStaleMembersOfLimitPlaces(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		s.limit(tdf.Limit{AtMost: 1})
		s.open(limitedTask(), limitedTask(), limitedTask(), limitedTask())
		first := s.claim(60)
		s.claimAll("default")
		s.do("ZADD", "$open:limit=db", 1, "x", 2, 99)
		s.do("HSET", "$task:2", "place", "default")
		if err := s.execute(first, tdf.Result{Exit: "0"}); err != nil {
			t.Fatal(err)
		}
		var got []int64
		for range 5 {
			s.do("ZADD", "$limits_due", "XX", 1, "db")
			s.round()
			got = append(got, s.claimAll("default")...)
		}
		if len(got) != 1 {
			t.Errorf("claimed %v", got)
		}
	})
}

// A returned task has an old score. Claims find it, although they have continued behind a younger task that they do not want.
func TestReturnedTaskBeforeAPosition(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		s.limit(tdf.Limit{AtMost: 1})
		s.open(limitedTask(), limitedTask())
		held := inGroup("held")
		held.LimitKey = ""
		s.open(held)
		if _, err := s.store.Pause(s.Context(), "user", tdf.Pausable{Group: "held"}); err != nil {
			t.Fatal(err)
		}
		first := s.claim(60)
		if got := s.claimAll("default"); len(got) > 0 {
			t.Fatal(got)
		}
		s.do("EVAL", `for _, k in ipairs(redis.call('KEYS', ARGV[1])) do
			local v = redis.call('GET', k)
			redis.call('SET', k, (string.gsub(v, '^%S+', function(t) return string.format('%.6f', tonumber(t) - 2) end)))
		end`, 0, s.ns+":passed:*")
		if err := s.execute(first, tdf.Result{Exit: "0"}); err != nil {
			t.Fatal(err)
		}
		s.round()
		if got := s.claimAll("default"); len(got) != 1 || got[0] != 2 {
			t.Errorf("claimed %v", got)
		}
	})
}

// A running task that another program has removed leaves its limit, although no task waits.
func TestAuditChecksLimitedTasks(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		s.limit(tdf.Limit{AtMost: 1})
		s.open(limitedTask())
		s.claim(60)
		s.do("DEL", "$task:1")
		s.do("ZREM", "$running", "1")
		s.do("ZREM", "$due", "1")
		s.round()
		s.open(limitedTask())
		if got := s.claimAll("default"); !slices.Equal(got, []int64{2}) {
			t.Errorf("claimed %d", got)
		}
		s.checkConsistent()
	})
}

// The tasks of a queue without workers return beside the others, after nobody has claimed the first of them for a while. The
// tasks of the other queue return as the limit has room.
func TestQueueWithoutWorkersHoldsNobody(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		s.limit(tdf.Limit{AtMost: 0})
		left := limitedTask()
		left.Queue = "left"
		s.open(left, left, left)
		ids := s.open(limitedTask(), limitedTask(), limitedTask(), limitedTask(), limitedTask())
		if got := s.claimAll("left", "default"); len(got) > 0 {
			t.Fatalf("claimed %d", got)
		}
		s.limit(tdf.Limit{AtMost: 2})
		s.round()
		if got := s.claimAll("default"); len(got) > 0 {
			t.Fatalf("claimed %d", got)
		}
		s.do("ZINCRBY", "$returned:db", "-11", "1")
		s.do("ZINCRBY", "$returned:db", "-11", "2")
		s.do("ZADD", "$limits_due", "XX", "1", "db")
		if done := s.round(); done["returned"] != 3 {
			t.Errorf("the round did %v", done)
		}
		if got := s.claimAll("default"); !slices.Equal(got, ids[:2]) {
			t.Errorf("claimed %d, want %d", got, ids[:2])
		}
		s.checkConsistent()
	})
}

// If waiting tasks cannot return because a key has a wrong type, the server does its other work, and reports the error.
func TestServerGoesOnWithoutReturns(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		s.limit(tdf.Limit{AtMost: 0})
		d := limitedTask()
		d.Queue = "a"
		s.open(d)
		s.claimAll("a")
		s.do("SET", "$open:queue=a", "x")
		s.limit(tdf.Limit{AtMost: 1})
		s.do("DEL", "$servers")
		if _, err := s.server.RunOnce(s.Context()); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			s.Error(err)
		}
		if n := s.do("ZCARD", "$servers"); fmt.Sprint(n) != "1" {
			s.Errorf("%v heartbeats", n)
		}
	})
}
