package server

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/walk"
)

// These tests send the same commands to Redis as managers and workers of the original TDF. Both versions may share a
// namespace (docs/redis.md, "Beside the original").

// byHand opens a task as the manager of the original TDF does.
func (s *site) byHand(id int, fields ...any) {
	s.Helper()
	s.do("SET", "$task_id", id)
	key := s.ns + ":task:" + itoa(id)
	s.do(append([]any{
		"HSET", key, "id", id, "namespace", s.ns, "program", "p", "source", "rsync:/p/run.sh", "input", "1",
		"start_after", "0", "end_before", "inf", "timeout", "inf", "max_fails", "0", "max_timeouts", "0",
		"state", "open", "round", "0", "fails", "0", "timeouts", "0", "log", "", "0:open", s.now().String(),
	}, fields...)...)
	s.do("ZADD", "$open", "0", id)
}

// claimByHand claims a task in two steps, as the worker of the original TDF does.
func (s *site) claimByHand(id int, round string, at task.Time) {
	s.Helper()
	s.do("ZREM", "$open", id)
	s.do("ZADD", "$running", at.String(), id)
	s.do("HSET", "$task:"+itoa(id), "state", "running", round+":running", at.String(), round+":worker", "old")
}

func (s *site) executeByHand(id int, round, stderr string) {
	s.Helper()
	at := s.now().String()
	s.do("ZREM", "$running", id)
	s.do("ZADD", "$executed", at, id)
	s.do("HSET", "$task:"+itoa(id), "state", "executed", round+":executed", at, round+":output", "out", round+":error", stderr)
}

func itoa(i int) string { return task.Time(i).String() }

func TestOriginalTaskFromOpenToArchived(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		s.byHand(1)
		c := s.claim(60)
		expect.NoError(s, c.Invalid)
		expect.MustEqual(s, c.Task.Input, "1")
		expect.MustEqual(s, c.Task.MaxLosses, 3)
		expect.NoError(s, s.execute(c, rules.Result{Output: "out", Exit: "0"}))
		s.round()
		m := expect.Result(rules.Archive(s.mustBe(1, task.Succeeded, 0))).Value(s)
		s.server.apply(s.Context(), []rules.Move{m}, Done{})
		s.mustBe(1, task.Archived, 0)
		s.checkConsistent()
	})
}

func TestOriginalWorkersTasksAreSettledInTheNextRound(t *testing.T) {
	s := newSite(t)
	s.round() // the server has already started
	ago := s.now() - 100
	for id, fields := range [][]any{{}, {}, {"max_fails", "1"}, {"timeout", "50"}, {"timeout", "50", "max_timeouts", "1"}, {"end_before", (s.now() - 5).String()}, {"timeout", "500"}} {
		s.byHand(id+1, fields...)
		s.claimByHand(id+1, "0", ago)
	}
	s.executeByHand(1, "0", "")
	s.executeByHand(2, "0", "boom")
	s.executeByHand(3, "0", "boom")
	s.round()
	s.mustBe(1, task.Succeeded, 0)
	s.mustBe(2, task.Failed, 0)
	s.mustBe(3, task.Open, 1)
	s.mustBe(4, task.TimedOut, 0)
	s.mustBe(5, task.Open, 1)
	s.mustBe(6, task.Expired, 0)
	s.mustBe(7, task.Running, 0)
	s.checkConsistent()
}

func TestOriginalTimeOutComesWhenItIsDue(t *testing.T) {
	s := newSite(t)
	s.byHand(1, "timeout", "50")
	claimed := s.now()
	s.claimByHand(1, "0", claimed)
	s.round()
	s.mustBe(1, task.Running, 0)
	due, err := s.cli.ZScore(s.Context(), s.ns+":due", "1").Result()
	if err != nil || task.Time(due).String() != claimed.Add(51).String() { // the worker itself ends its program a second earlier
		s.Fatalf("claimed at %v, due at %v, %v", claimed, task.Time(due), err)
	}
	settleAfter := func(passed task.Time) (claimed task.Time) { // as if this time had passed since the claim
		claimed = s.now() - passed
		s.do("HSET", "$task:1", "0:running", claimed.String())
		s.do("ZADD", "$due", task.Time(1).String(), "1")
		expect.Result(s.server.settleDue(s.Context())).OK(s)
		return claimed
	}
	if claimed := settleAfter(50.1); s.now() < claimed+51 { // on a slow machine, the margin of one second may be over by now
		s.mustBe(1, task.Running, 0)
		settleAfter(100)
	}
	s.mustBe(1, task.TimedOut, 0)
}

// repairedAfterGrace checks that the audit repairs a task only after the task stayed unchanged for the grace of the audit.
func (s *site) repairedAfterGrace() {
	s.Helper()
	s.server.audit.grace = 60
	for range 3 {
		expect.MustEqual(s, s.round().Total(), 0, "repaired before the grace")
	}
	for id, suspicion := range s.server.audit.suspects {
		suspicion.since -= 60
		s.server.audit.suspects[id] = suspicion
	}
	done := s.round()
	expect.MustTrue(s, done["repaired"] != 0, "not repaired after the grace", done)
	s.round() // settle the repaired tasks
	s.checkConsistent()
}

// A worker of the original TDF dies between two of its commands: in its claim, and in its commit.
func TestOriginalWorkerDied(t *testing.T) {
	for name, c := range map[string]struct {
		commands func(s *site)
		losses   int
	}{
		"claim": {func(s *site) { s.do("ZREM", "$open", "1") }, 0},
		"claim, between list and hash": {func(s *site) {
			s.do("ZREM", "$open", "1")
			s.do("ZADD", "$running", s.now().String(), "1")
		}, 0},
		"commit": {func(s *site) {
			s.claimByHand(1, "0", s.now())
			s.do("ZREM", "$running", "1")
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.byHand(1)
			c.commands(s)
			s.repairedAfterGrace()
			expect.Equal(s, s.mustBe(1, task.Open, c.losses).Losses, c.losses)
			expect.Equal(s, s.claim(60).Task.ID, 1, "the repaired task cannot be claimed")
		})
	}
}

func TestUnfinishedOriginalCommitIsNotSettled(t *testing.T) {
	s := newSite(t)
	s.byHand(1)
	s.claimByHand(1, "0", s.now())
	s.do("ZREM", "$running", "1")
	s.do("ZADD", "$executed", s.now().String(), "1")
	s.do("HSET", "$task:1", "state", "executed", "0:executed", s.now().String(), "0:output", "out")
	s.server.audit.grace = 60
	expect.MustEqual(s, s.round().Total(), 0, "settled before the error was written")
	s.do("HSET", "$task:1", "0:error", "boom")
	s.do("ZADD", "$due", "1", "1")
	s.round()
	s.mustBe(1, task.Failed, 0)
}

// A worker of the original TDF loses its round. It then writes its result into the next round, which another worker is
// running.
func TestOriginalCommitIntoAnothersRound(t *testing.T) {
	s := newSite(t)
	s.byHand(1, "timeout", "50", "max_timeouts", "1")
	s.claimByHand(1, "0", s.now()-100)
	s.round()
	s.mustBe(1, task.Open, 1)
	c := s.claim(60)
	s.executeByHand(1, "0", "")
	s.server.audit.grace = 60
	expect.MustEqual(s, s.round().Total(), 0, "the late commit was settled")
	// The worker that holds the claim renews its lease, and its result counts.
	expect.NoError(s, expect.Result(s.store.Renew(s.Context(), 60, renewal(c))).Value(s).Lost[0])
	expect.NoError(s, s.execute(c, rules.Result{Error: "mine"}))
	s.round()
	one := s.mustBe(1, task.Failed, 1)
	expect.Equal(s, one.Fails, 1)
	expect.Equal(s, one.Rounds.At(1).Error, "mine")
	s.checkConsistent()
}

func TestOriginalCommitIntoAnothersRoundIsRepaired(t *testing.T) {
	s := newSite(t)
	s.byHand(1, "timeout", "50", "max_timeouts", "1")
	s.claimByHand(1, "0", s.now()-100)
	s.round()
	s.claim(600)
	s.executeByHand(1, "0", "")
	s.repairedAfterGrace()
	s.mustBe(1, task.Running, 1) // the lease of the claim still holds

	s.byHand(2, "timeout", "50", "max_timeouts", "1")
	s.claimByHand(2, "0", s.now()-100)
	s.server.audit.grace = 0
	s.round()
	s.executeByHand(2, "0", "") // no worker has claimed round 1 yet
	s.repairedAfterGrace()
	expect.Equal(s, s.mustBe(2, task.Open, 2).Losses, 1, "losses")
}

func TestOriginalCommitAfterTheTaskFinished(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		s.byHand(1, "timeout", "50")
		s.claimByHand(1, "0", s.now()-100)
		s.round()
		s.mustBe(1, task.TimedOut, 0)
		s.executeByHand(1, "0", "")
		s.repairedAfterGrace()
		s.mustBe(1, task.TimedOut, 0)
	})
}

func TestStuckInTheOriginalsTransientLists(t *testing.T) {
	s := newSite(t)
	stuck := func(id int, list string, fields ...any) {
		s.byHand(id, fields...)
		s.claimByHand(id, "0", s.now()-100)
		s.do("ZREM", "$running", id)
		s.do("ZADD", "$"+list, s.now().String(), id)
		s.do("HSET", "$task:"+itoa(id), "state", list, "0:"+list, s.now().String())
	}
	stuck(1, "timeout", "timeout", "50")
	stuck(2, "timeout", "timeout", "50", "max_timeouts", "1")
	stuck(3, "failure", "0:executed", s.now().String(), "0:output", "", "0:error", "boom")
	stuck(4, "failure", "0:executed", s.now().String(), "0:output", "", "0:error", "boom", "max_fails", "2")
	stuck(5, "failure", "fails", "1") // the failure is already counted
	s.round()
	s.mustBe(1, task.TimedOut, 0)
	s.mustBe(2, task.Open, 1)
	s.mustBe(3, task.Failed, 0)
	s.mustBe(4, task.Open, 1)
	expect.Equal(s, s.mustBe(5, task.Failed, 0).Fails, 1, "counted twice")
	s.checkConsistent()
}

func TestOtherThingsInTheLists(t *testing.T) {
	s := newSite(t)
	s.byHand(1)
	s.do("ZADD", "$archived", "5", "1")
	s.do("HSET", "$task:1", "state", "succeeded")
	s.do("ZADD", "$running", "5", "99") // an id without a task
	s.do("ZADD", "$failed", "5", "no number")
	s.byHand(2)
	s.do("HSET", "$task:2", "state", "confused")
	s.do("ZADD", "$due", "1", "2") // it does no harm to settle this task again
	s.byHand(3)
	s.do("ZADD", "$succeeded", "5", "3")
	s.repairedAfterGrace()
	expect.Equal(s, s.mustBe(1, task.Archived, 0).Outcome, "succeeded", "outcome")
	s.mustBe(2, task.Open, 0)
	s.mustBe(3, task.Open, 0)
	expect.True(s, s.do("ZSCORE", "$running", "99") == nil, "the id without a task is still in running")
}

// If the id of a consistent task is also in one of the two legacy lists of the original TDF, this does no harm.
func TestStaleEntryInTransientLists(t *testing.T) {
	s := newSite(t)
	s.open(define(), define())
	s.claim(60)
	c := s.claim(60)
	s.execute(c, rules.Result{Exit: "0"})
	s.round()
	s.do("ZADD", "$timeout", s.now().String(), "1")
	s.do("ZADD", "$failure", s.now().String(), "2")
	s.repairedAfterGrace()
	s.mustBe(1, task.Running, 0)
	s.mustBe(2, task.Succeeded, 0)
}

// If a worker of the original TDF claimed a task, the task times out on time. This holds even if the task's score in
// $ns:due comes from its end_before, and even if many other tasks are claimed later.
func TestOriginalTimeOutAmongManyTasks(t *testing.T) {
	s := newSite(t)
	s.round()
	for range 400 {
		s.open(define())
	}
	d := define()
	d.Timeout, d.EndBefore = 0.2, s.now().Add(3600)
	id := int(s.open(d)[0])
	s.claimByHand(id, "0", s.now())
	for left := 300; left > 0; {
		c := expect.Result(s.store.Claim(s.Context(), claimOf(left))).Value(s)
		expect.MustTrue(s, len(c.Claims) != 0, left)
		left -= len(c.Claims)
	}
	s.server.audit.page = walk.Page{} // restart the walk at the lowest ids, far from this task
	s.round()
	for end := s.now().Add(1.3); s.now() < end; {
	}
	s.round()
	s.mustBe(int64(id), task.TimedOut, 0)
}

// The audit's walk reaches every task, even if managers open tasks all the time.
func TestWalkReachesAllTasksWhileTasksAreOpened(t *testing.T) {
	s := newSite(t)
	s.byHand(1)
	for range 40 {
		s.open(define())
	}
	for range 5 {
		s.round()
	}
	s.do("ZREM", "$open", "1")
	for range 60 {
		s.open(define())
		s.server.audit.walked = 0 // as if walkPause was over
		s.round()
	}
	s.mustBe(1, task.Open, 0)
}

// Task keys of a wrong Redis type, and list members that are not ids, do not stop workers or the server.
func TestBrokenKeys(t *testing.T) {
	s := newSite(t)
	for _, id := range []string{"991", "992", "no id", "7\n8"} {
		s.do("ZADD", "$open", "0", id)
		s.do("ZADD", "$due", "0", id)
	}
	s.do("SET", "$task:991", "a string")
	s.do("LPUSH", "$task:992", "a list")
	s.open(define())
	c := s.claim(60)
	s.execute(c, rules.Result{Exit: "0"})
	s.round()
	s.mustBe(c.Task.ID, task.Succeeded, 0)
	left := s.do("ZCARD", "$due")
	expect.True(s, left == int64(0), left, "are still due")
}
