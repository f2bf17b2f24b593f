package server

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

func limitedTask() task.Properties {
	d := define()
	d.LimitKey = "db"
	return d
}

func (s *site) limit(l task.Limit) {
	s.Helper()
	expect.NoError(s, s.store.Limits.SetLimit(s.Context(), "db", l))
}

// claimAll claims all tasks of the given queues that may run, and returns their ids.
func (s *site) claimAll(queues ...string) (ids []int64) {
	s.Helper()
	request := redisstate.ClaimParams{Worker: "w", Most: 100, Lease: 60}
	offer := class.Offer{Programs: true}
	for _, q := range queues {
		offer.Queues = append(offer.Queues, class.QueueShare{Queue: q})
	}
	request.Offer = &offer
	for more := true; more; {
		c := expect.Result(s.store.Claim(s.Context(), request)).Value(s)
		for _, claim := range c.Claims {
			ids = append(ids, claim.Task.ID)
		}
		more = c.More || len(c.Claims) == request.Most
	}
	return ids
}

// A place that a lost worker leaves goes to the oldest waiting task, in the same round of the server.
func TestPlaceOfLostWorkerIsUsed(t *testing.T) {
	s := newSite(t)
	s.limit(task.Limit{AtMost: 1})
	s.open(limitedTask(), limitedTask(), limitedTask())
	s.claim(1e-6)
	expect.MustLen(t, s.claimAll("default"), 0, "claimed")
	done := s.round()
	expect.Equal(t, done["reopened"], 1)
	expect.Equal(t, done["returned"], 1)
	expect.Equal(t, s.claimAll("default"), []int64{2}, "claimed")
	s.checkConsistent()
}

// Waiting tasks of a paused queue keep no other task waiting. When the pause ends, they wait again, in their order.
func TestPausedTasksKeepNobodyWaiting(t *testing.T) {
	s := newSite(t)
	s.limit(task.Limit{AtMost: 0})
	var all []task.Properties
	for range 500 + 10 {
		d := limitedTask()
		d.Queue = "night"
		all = append(all, d)
	}
	night := s.open(all...)
	day := s.open(limitedTask())
	expect.MustLen(t, s.claimAll("night", "default"), 0, "claimed")
	pause := task.Pausable{Queue: "night"}
	expect.Result(s.store.Limits.Pause(s.Context(), "ann", pause)).OK(t)
	s.limit(task.Limit{AtMost: 2})
	s.returned()
	expect.Equal(t, s.claimAll("night", "default"), day, "claimed")
	expect.Result(s.store.Limits.Resume(s.Context(), "ann", pause)).OK(t)
	s.returned()
	expect.Equal(t, s.claimAll("night", "default"), night[:1], "claimed", night[0])
	s.checkConsistent()
}

// While the whole namespace is paused, the waiting tasks stay where they are.
func TestPausedNamespaceReturnsNothing(t *testing.T) {
	s := newSite(t)
	s.limit(task.Limit{AtMost: 0})
	ids := s.open(limitedTask(), limitedTask())
	s.claimAll("default")
	expect.Result(s.store.Limits.Pause(s.Context(), "ann", task.Everything)).OK(t)
	s.limit(task.Limit{AtMost: 1})
	expect.Equal(t, s.returned(), 0)
	expect.Result(s.store.Limits.Resume(s.Context(), "ann", task.Everything)).OK(t)
	s.limit(task.Limit{AtMost: 2}) // a new limit makes the key due
	expect.Equal(t, s.returned(), 2)
	expect.Equal(t, s.claimAll("default"), ids, "claimed")
}

// With a running server, all tasks of a key get their turn, whether the limit is a number or a rate.
func TestRunReturnsWaitingTasks(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]task.Limit{"number": {AtMost: 2}, "rate": {Starts: 3, Per: task.Seconds(0.02).Std()}} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(s *site) {
				const tasks = 30
				s.limit(limit)
				var all []task.Properties
				for range tasks {
					all = append(all, limitedTask())
				}
				s.open(all...)
				ctx, stop := context.WithCancel(s.Context())
				defer stop()
				var running sync.WaitGroup
				running.Go(func() { s.server.Run(ctx) })
				waker := s.store.WakeWorker(nil, nil)
				defer waker.Close()
				for done := 0; done < tasks; {
					c, err := s.store.Claim(s.Context(), redisstate.ClaimParams{Worker: "w", Most: 10, Lease: 60})
					if err != nil {
						t.Error(err)
						break
					}
					n := len(c.Claims)
					if limit.HasNumber() {
						expect.Compare(t, n, "<=", limit.AtMost)
					}
					for _, claim := range c.Claims {
						expect.NoError(t, s.execute(claim, rules.Result{Exit: "0"}))
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
	s := newSite(t)
	const keys, each = 120, 12
	var all []task.Properties
	for i := range keys * each {
		d := limitedTask()
		d.LimitKey = "k" + strconv.Itoa(i%keys)
		all = append(all, d)
		if i < keys {
			expect.NoError(t, s.store.Limits.SetLimit(s.Context(), d.LimitKey, task.Limit{AtMost: 0}))
		}
	}
	s.open(all...)
	expect.MustLen(t, s.claimAll("default"), 0, "claimed")
	for i := range keys {
		expect.NoError(t, s.store.Limits.SetLimit(s.Context(), "k"+strconv.Itoa(i), task.Limit{AtMost: each - 1}))
	}
	expect.Equal(t, s.returned(), keys*(each-1))
	expect.Len(t, s.claimAll("default"), keys*(each-1), "were claimed")
	s.checkConsistent()
}

// The limit counts a task that a worker of the original TDF runs, for example because a user put it into the list open, after the audit has seen the task. When the task has ended, a
// check notices that the task no longer runs.
func TestLimitCountsTasksOfOriginalWorkers(t *testing.T) {
	s := newSite(t)
	s.limit(task.Limit{AtMost: 1})
	s.open(limitedTask(), limitedTask())
	s.do("ZREM", "$open:placed", "1")
	s.do("ZREM", "$open:default", "1")
	s.do("ZADD", "$running", s.now().String(), "1")
	s.do("HSET", "$task:1", "state", "running", "0:running", s.now().String(), "0:worker", "original")
	s.round()
	expect.Len(t, s.claimAll("default"), 0, "claimed … beside the task of the original's worker")
	s.do("ZREM", "$running", "1")
	s.do("ZADD", "$executed", s.now().String(), "1")
	s.do("HSET", "$task:1", "state", "executed", "0:executed", s.now().String(), "0:output", "", "0:error", "")
	returned := s.round()["returned"]
	s.do("ZADD", "$held", "XX", "1", "limit=db") // the next check is due
	returned += s.round()["returned"]
	expect.Equal(t, returned, 1, "tasks returned")
	expect.Equal(t, s.claimAll("default"), []int64{2}, "claimed")
	s.checkConsistent()
}

// A stale member of the place of a key, from another program, does not keep the tasks behind it waiting.
func TestStaleMembersOfLimitPlaces(t *testing.T) {
	s := newSite(t)
	s.limit(task.Limit{AtMost: 1})
	s.open(limitedTask(), limitedTask(), limitedTask(), limitedTask())
	first := s.claim(60)
	s.claimAll("default")
	s.do("ZADD", "$held:limit=db", 0, "x", 0, "2147483647 0000000001.000000 99")
	s.do("HSET", "$task:2", "place", "default")
	expect.NoError(t, s.execute(first, rules.Result{Exit: "0"}))
	var got []int64
	for range 5 {
		s.do("ZADD", "$held", "XX", 1, "limit=db")
		s.round()
		got = append(got, s.claimAll("default")...)
	}
	expect.Len(t, got, 1, "claimed")
}

// A running task that another program has removed leaves its limit when a task waits for it.
func TestRemovedTasksLeaveTheirLimits(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		s.limit(task.Limit{AtMost: 1})
		s.open(limitedTask())
		s.claim(60)
		s.do("DEL", "$task:1")
		s.do("ZREM", "$running", "1")
		s.do("ZREM", "$due", "1")
		s.open(limitedTask())
		expect.Len(t, s.claimAll("default"), 0)
		s.round()
		expect.Equal(t, s.claimAll("default"), []int64{2}, "claimed")
		s.checkConsistent()
	})
}

// The tasks of a queue without workers return beside the others, after nobody has claimed the first of them for a while. The
// tasks of the other queue return as the limit has room.
func TestQueueWithoutWorkersHoldsNobody(t *testing.T) {
	s := newSite(t)
	s.limit(task.Limit{AtMost: 0})
	left := limitedTask()
	left.Queue = "left"
	s.open(left, left, left)
	ids := s.open(limitedTask(), limitedTask(), limitedTask(), limitedTask(), limitedTask())
	expect.MustLen(t, s.claimAll("left", "default"), 0, "claimed")
	s.limit(task.Limit{AtMost: 2})
	s.round()
	expect.MustLen(t, s.claimAll("default"), 0, "claimed")
	s.do("ZINCRBY", "$returned:limit=db", "-11", "1")
	s.do("ZINCRBY", "$returned:limit=db", "-11", "2")
	s.do("ZADD", "$held", "XX", "1", "limit=db")
	expect.Equal(t, s.returned(), 6)
	expect.Equal(t, s.claimAll("default"), ids[:2], "claimed")
	s.checkConsistent()
}

// If waiting tasks cannot return because a key has a wrong type, the server does its other work, and reports the error.
func TestServerGoesOnWithoutReturns(t *testing.T) {
	s := newSite(t)
	s.do("SET", "$failing", "x")
	s.do("DEL", "$servers")
	expect.Result(s.server.RunOnce(s.Context())).Fails(s, "WRONGTYPE")
	expect.Equal(s, fmt.Sprint(s.do("ZCARD", "$servers")), "1", "heartbeats")
}
