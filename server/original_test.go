package server

import (
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// What managers and workers of the original TDF write, command by command. They and ours
// share a namespace (docs/redis.md, "Beside the original").

// byHand opens a task as the original's manager does.
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

// claimByHand is the original worker's claim: two steps.
func (s *site) claimByHand(id int, round string, at tdf.Time) {
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

func itoa(i int) string { return tdf.Time(i).String() }

func TestOriginalTaskLivesOnHere(t *testing.T) {
	onEach(t, func(s *site) {
		s.byHand(1)
		c := s.claim(60)
		if c.Invalid != nil || c.Task.Input != "1" || c.Task.MaxLosses != 3 {
			s.Fatalf("claimed %+v, %v", c.Task, c.Invalid)
		}
		if err := s.execute(c, tdf.Result{Output: "out", Exit: "0"}); err != nil {
			s.Fatal(err)
		}
		s.round()
		m, err := s.is(1, tdf.Succeeded, 0).Archive()
		if err != nil {
			s.Fatal(err)
		}
		s.server.carryOut(s.Context(), []tdf.Move{m}, Done{})
		s.is(1, tdf.Archived, 0)
		s.sound()
	})
}

func TestOriginalWorkersTasksAreSettledInTheNextRound(t *testing.T) {
	onEach(t, func(s *site) {
		s.round() // a server that is there already
		ago := s.now() - 100
		for id, fields := range [][]any{{}, {}, {"max_fails", "1"}, {"timeout", "50"}, {"timeout", "50", "max_timeouts", "1"}, {"end_before", (s.now() - 5).String()}, {"timeout", "500"}} {
			s.byHand(id+1, fields...)
			s.claimByHand(id+1, "0", ago)
		}
		s.executeByHand(1, "0", "")
		s.executeByHand(2, "0", "boom")
		s.executeByHand(3, "0", "boom")
		s.round()
		s.is(1, tdf.Succeeded, 0)
		s.is(2, tdf.Failed, 0)
		s.is(3, tdf.Open, 1)
		s.is(4, tdf.TimedOut, 0)
		s.is(5, tdf.Open, 1)
		s.is(6, tdf.Expired, 0)
		s.is(7, tdf.Running, 0)
		s.sound()
	})
}

func TestOriginalTimeOutComesWhenItIsDue(t *testing.T) {
	onEach(t, func(s *site) {
		s.byHand(1, "timeout", "50")
		claimed := s.now()
		s.claimByHand(1, "0", claimed)
		s.round()
		s.is(1, tdf.Running, 0)
		due, err := s.cli.ZScore(s.Context(), s.ns+":due", "1").Result()
		if err != nil || tdf.Time(due).String() != claimed.Add(50).String() {
			s.Fatalf("claimed at %v, due at %v, %v", claimed, tdf.Time(due), err)
		}
		s.do("HSET", "$task:1", "0:running", (claimed - 100).String()) // as if 100 s had passed since
		s.do("ZADD", "$due", tdf.Time(due-100).String(), "1")
		if _, err := s.server.settleDue(s.Context()); err != nil { // without an audit: it is due
			s.Fatal(err)
		}
		s.is(1, tdf.TimedOut, 0)
	})
}

// Seen wrong once, nothing is done; seen the same after the grace, it is mended.
func (s *site) mendedAfterTheGrace() {
	s.Helper()
	s.server.audit.grace = 60
	for range 3 {
		if done := s.round(); done.Total() != 0 {
			s.Fatalf("mended at first sight: %v", done)
		}
	}
	for id, suspicion := range s.server.audit.suspects {
		suspicion.since -= 60
		s.server.audit.suspects[id] = suspicion
	}
	if done := s.round(); done["mended"] == 0 {
		s.Fatalf("not mended after the grace: %v", done)
	}
	s.round() // what it led to
	s.sound()
}

func TestOriginalWorkerDiedInItsClaim(t *testing.T) {
	onEach(t, func(s *site) {
		s.byHand(1)
		s.do("ZREM", "$open", "1")
		s.mendedAfterTheGrace()
		s.is(1, tdf.Open, 0)
		if c := s.claim(60); c.Task.ID != 1 {
			s.Error("it cannot be claimed")
		}
	})
}

func TestOriginalWorkerDiedBetweenListAndHash(t *testing.T) {
	onEach(t, func(s *site) {
		s.byHand(1)
		s.do("ZREM", "$open", "1")
		s.do("ZADD", "$running", s.now().String(), "1")
		s.mendedAfterTheGrace()
		s.is(1, tdf.Open, 0)
	})
}

func TestOriginalWorkerDiedInItsCommit(t *testing.T) {
	onEach(t, func(s *site) {
		s.byHand(1)
		s.claimByHand(1, "0", s.now())
		s.do("ZREM", "$running", "1")
		s.mendedAfterTheGrace()
		if task := s.is(1, tdf.Open, 1); task.Losses != 1 {
			s.Errorf("losses %d", task.Losses)
		}
	})
}

func TestOriginalCommitIsNotJudgedHalfWritten(t *testing.T) {
	onEach(t, func(s *site) {
		s.byHand(1)
		s.claimByHand(1, "0", s.now())
		s.do("ZREM", "$running", "1")
		s.do("ZADD", "$executed", s.now().String(), "1")
		s.do("HSET", "$task:1", "state", "executed", "0:executed", s.now().String(), "0:output", "out")
		s.server.audit.grace = 60
		if done := s.round(); done.Total() != 0 {
			s.Fatalf("judged before the error was there: %v", done)
		}
		s.do("HSET", "$task:1", "0:error", "boom")
		s.do("ZADD", "$due", "1", "1")
		s.round()
		s.is(1, tdf.Failed, 0)
	})
}

// The original's worker was given up, and commits into a round that another one has.
func TestOriginalCommitIntoAnothersRound(t *testing.T) {
	onEach(t, func(s *site) {
		s.byHand(1, "timeout", "50", "max_timeouts", "1")
		s.claimByHand(1, "0", s.now()-100)
		s.round()
		s.is(1, tdf.Open, 1)
		c := s.claim(60)
		s.executeByHand(1, "0", "")
		s.server.audit.grace = 60
		if done := s.round(); done.Total() != 0 {
			s.Fatalf("the late commit was acted on: %v", done)
		}
		// Its rightful worker does not notice: it renews, and its own result is the one that counts.
		if renewed, err := s.store.Renew(s.Context(), 60, renewal(c)); err != nil || renewed.Lost[0] != nil {
			s.Fatal(renewed, err)
		}
		if err := s.execute(c, tdf.Result{Error: "mine"}); err != nil {
			s.Fatal(err)
		}
		s.round()
		if task := s.is(1, tdf.Failed, 1); task.Fails != 1 || task.Rounds.At(1).Error != "mine" {
			s.Errorf("judged by %+v", task.Rounds.At(1))
		}
		s.sound()
	})
}

func TestOriginalCommitIntoAnothersRoundIsMended(t *testing.T) {
	onEach(t, func(s *site) {
		s.byHand(1, "timeout", "50", "max_timeouts", "1")
		s.claimByHand(1, "0", s.now()-100)
		s.round()
		s.claim(600)
		s.executeByHand(1, "0", "")
		s.mendedAfterTheGrace()
		s.is(1, tdf.Running, 1) // its claim's lease lives

		s.byHand(2, "timeout", "50", "max_timeouts", "1")
		s.claimByHand(2, "0", s.now()-100)
		s.server.audit.grace = 0
		s.round()
		s.executeByHand(2, "0", "") // nobody has claimed round 1 yet
		s.mendedAfterTheGrace()
		if task := s.is(2, tdf.Open, 2); task.Losses != 1 {
			s.Errorf("losses %d", task.Losses)
		}
	})
}

func TestOriginalCommitAfterTheTaskWasOver(t *testing.T) {
	onEach(t, func(s *site) {
		s.byHand(1, "timeout", "50")
		s.claimByHand(1, "0", s.now()-100)
		s.round()
		s.is(1, tdf.TimedOut, 0)
		s.executeByHand(1, "0", "")
		s.mendedAfterTheGrace()
		s.is(1, tdf.TimedOut, 0)
	})
}

func TestStuckInTheOriginalsTransientLists(t *testing.T) {
	onEach(t, func(s *site) {
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
		stuck(5, "failure", "fails", "1") // it had been counted already
		s.round()
		s.is(1, tdf.TimedOut, 0)
		s.is(2, tdf.Open, 1)
		s.is(3, tdf.Failed, 0)
		s.is(4, tdf.Open, 1)
		if task := s.is(5, tdf.Failed, 0); task.Fails != 1 {
			s.Errorf("counted twice: %d", task.Fails)
		}
		s.sound()
	})
}

func TestTasksThatMakeNoSenseFailWithTheSameWords(t *testing.T) {
	onEach(t, func(s *site) {
		for i, c := range []struct{ property, value, words string }{
			{"program", "", "program: is empty"},
			{"program", "../p", "program: "},
			{"source", "ftp://x/run.sh", "source: "},
			{"input", "'a", "input: a quote is not closed"},
			{"timeout", "soon", `timeout: "soon" is not a number of seconds from 0 up, or inf`},
			{"end_before", "nan", `end_before: "nan" is`},
			{"max_fails", "-1", `max_fails: "-1" is not a number from 0`},
			{"fail_on", "moon", `fail_on: "moon" is none of stderr, exit, any`},
		} {
			s.byHand(i+1, c.property, c.value)
			s.round()
			task := s.is(int64(i+1), tdf.Failed, 0)
			if !strings.HasPrefix(task.Rounds.At(0).Error, c.words) {
				s.Errorf("%s=%q: %q", c.property, c.value, task.Rounds.At(0).Error)
			}
		}
	})
}

func TestOtherThingsInTheLists(t *testing.T) {
	onEach(t, func(s *site) {
		s.byHand(1)
		s.do("ZADD", "$archived", "5", "1")
		s.do("HSET", "$task:1", "state", "succeeded")
		s.do("ZADD", "$running", "5", "99") // no such task
		s.do("ZADD", "$failed", "5", "no number")
		s.byHand(2)
		s.do("HSET", "$task:2", "state", "confused")
		s.do("ZADD", "$due", "1", "2") // it is looked at without harm
		s.byHand(3)
		s.do("ZADD", "$succeeded", "5", "3")
		s.mendedAfterTheGrace()
		if task := s.is(1, tdf.Archived, 0); task.Outcome != "succeeded" {
			s.Errorf("outcome %q", task.Outcome)
		}
		s.is(2, tdf.Open, 0)
		s.is(3, tdf.Open, 0)
		if n := s.do("ZSCORE", "$running", "99"); n != nil {
			s.Error("the id without a task is still there")
		}
	})
}

// A stale entry in the original's transient lists does no harm to a task that is well.
func TestStaleEntryInTransientLists(t *testing.T) {
	onEach(t, func(s *site) {
		s.open(define(), define())
		s.claim(60)
		c := s.claim(60)
		s.execute(c, tdf.Result{Exit: "0"})
		s.round()
		s.do("ZADD", "$timeout", s.now().String(), "1")
		s.do("ZADD", "$failure", s.now().String(), "2")
		s.mendedAfterTheGrace()
		s.is(1, tdf.Running, 0)
		s.is(2, tdf.Succeeded, 0)
	})
}

// An original's task is timed out soon also when it has an end_before, which made it due long
// ago, and when many others were claimed after it.
func TestOriginalTimeOutIsFoundInACrowd(t *testing.T) {
	onEach(t, func(s *site) {
		s.round()
		for range 400 {
			s.open(define())
		}
		d := define()
		d.Timeout, d.EndBefore = 0.2, s.now().Add(3600)
		id := int(s.open(d)[0])
		s.claimByHand(id, "0", s.now())
		for left := 300; left > 0; {
			c, err := s.store.Claim(s.Context(), claimOf(left))
			if err != nil || len(c.Claims) == 0 {
				s.Fatal(left, err)
			}
			left -= len(c.Claims)
		}
		s.server.audit.page = redisstate.WalkPage{} // far away: the walk begins with the lowest ids
		s.round()
		for end := s.now().Add(0.3); s.now() < end; {
		}
		s.round()
		s.is(int64(id), tdf.TimedOut, 0)
	})
}

// The audit comes round to every task while others are opened all the time.
func TestWalkComesRoundWhileTasksAreOpened(t *testing.T) {
	onEach(t, func(s *site) {
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
			s.round()
		}
		s.is(1, tdf.Open, 0)
	})
}

// Keys of other types where tasks should be, and names that are no ids, stop nobody.
func TestBrokenKeysStopNobody(t *testing.T) {
	onEach(t, func(s *site) {
		for _, id := range []string{"991", "992", "no id", "7\n8"} {
			s.do("ZADD", "$open", "0", id)
			s.do("ZADD", "$due", "0", id)
		}
		s.do("SET", "$task:991", "a string")
		s.do("LPUSH", "$task:992", "a list")
		s.open(define())
		c := s.claim(60)
		s.execute(c, tdf.Result{Exit: "0"})
		s.round()
		s.is(c.Task.ID, tdf.Succeeded, 0)
		if left := s.do("ZCARD", "$due"); left != int64(0) {
			s.Errorf("%v are still due", left)
		}
	})
}

// Rounds that nobody counted are no trap: the task is failed, and the server rests.
func TestRoundsThatNobodyCounted(t *testing.T) {
	onEach(t, func(s *site) {
		for i, round := range []string{"007", "100000", "1e3", "-1"} {
			s.byHand(i+1, "round", round)
		}
		s.round()
		for i := range 4 {
			if state := s.do("HGET", "$task:"+itoa(i+1), "state"); state != "failed" {
				s.Errorf("task %d is %v", i+1, state)
			}
		}
		if c, err := s.store.Claim(s.Context(), claimOf(9)); err != nil || len(c.Claims) != 0 {
			s.Errorf("claimed %v, %v", c.Claims, err)
		}
	})
}
