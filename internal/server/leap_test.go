package server

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/audit"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A leaper is a site whose Redis has a clock that leaps.
type leaper struct {
	*site
	leap func(by task.Seconds)
	runs bool // whether the clock is real; an artificial clock may stand still between two calls
}

// onEachClock runs a test on an embedded Redis with an artificial clock, and on a real Redis. A test cannot make the
// real clock leap. Instead, the test shifts all times that are stored in Redis in the opposite direction.
func onEachClock(t *testing.T, test func(s *leaper)) {
	t.Run("embedded", func(t *testing.T) {
		r := miniredis.RunT(t)
		c := &clock{r: r}
		c.leap(0)
		s := newSiteAt(t, r.Addr())
		s.store.Conn.Redis.AddHook(c)
		s.cli.AddHook(c)
		test(&leaper{s, c.leap, false})
	})
	t.Run("real", func(t *testing.T) {
		s := newSite(t)
		test(&leaper{s, func(by task.Seconds) { s.shift(-by) }, true})
	})
}

// A clock is an artificial clock that can leap. It is a hook of go-redis, and runs before each command of the site.
type clock struct {
	by time.Duration
	r  *miniredis.Miniredis
}

func (c *clock) leap(by task.Seconds) {
	c.by += by.Std()
	c.r.SetTime(time.Now().Add(c.by))
}

func (c *clock) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *clock) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.leap(0)
		return next(ctx, cmd)
	}
}

func (c *clock) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		c.leap(0)
		return next(ctx, all)
	}
}

// shift adds a span to all times in Redis, and to the server's last reading of the clock.
func (s *site) shift(by task.Seconds) {
	s.Helper()
	shifted := func(text any) (string, bool) {
		value, _ := text.(string)
		t, err := task.ParseTime(value)
		return t.Add(by).String(), err == nil && t > 1e9 && t < task.Never
	}
	for _, key := range []string{"open", "running", "expired", "due", "servers", "programs_used"} {
		for _, z := range s.cli.ZRangeWithScores(s.Context(), s.ns+":"+key, 0, -1).Val() {
			s.do("ZADD", "$"+key, strconv.FormatFloat(z.Score+float64(by), 'f', 6, 64), z.Member)
		}
	}
	for _, id := range s.cli.Keys(s.Context(), s.ns+":task:*").Val() {
		for _, field := range []string{"0:open", "0:running", "0:succeeded", "start_after", "end_before", "lease_until", "deadline", "ready"} {
			if value, ok := shifted(s.do("HGET", id, field)); ok {
				s.do("HSET", id, field, value)
			}
		}
	}
	if value, ok := shifted(s.do("GET", "$calm")); ok {
		s.do("SET", "$calm", value)
	}
	if value, ok := shifted(s.do("HGET", "$leap", "until")); ok {
		s.do("HSET", "$leap", "until", value)
	}
	if s.server.watch.last.clock.at > 0 {
		s.server.watch.last.clock.at = s.server.watch.last.clock.at.Add(by)
	}
	if s.server.ahead.back > 0 {
		s.server.ahead.back = s.server.ahead.back.Add(by)
	}
}

// claimable claims every claimable task, and returns the ids in the order of the claims.
func (s *site) claimable() []int64 {
	s.Helper()
	var ids []int64
	request := claimOf(1)
	for {
		c := expect.Result(s.store.Claim(s.Context(), request)).Value(s)
		for _, claim := range c.Claims {
			ids = append(ids, claim.Task.ID)
		}
		if len(c.Claims) == 0 && !c.More {
			return ids
		}
	}
}

func TestTasksCanBeClaimedAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	onEachClock(t, func(s *leaper) {
		s.round()
		soon, bounded := define(), define()
		soon.StartAfter = s.now().Add(-1800) // in the past now, but in the future after the clock is set back
		bounded.EndBefore = s.now().Add(100)
		s.open(define(), define(), soon, define(), bounded)
		s.leap(-3600)
		expect.MustLen(s, s.claimable(), 0, "claimed … before the server noticed")
		expect.Equal(s, s.round()["rescored"], 5, "the round did")
		s.open(define())
		now := s.now()
		expect.Equal(s, fmt.Sprint(s.claimable()), "[1 2 4 5 6]", "claimed")
		left := s.cli.ZRangeWithScores(s.Context(), s.ns+":open", 0, -1).Val()
		start, _ := task.ParseTime(s.do("HGET", "$task:3", "start_after").(string))
		expect.MustLen(s, left, 1)
		expect.MustEqual[any](s, left[0].Member, "3")
		expect.MustTrue(s, task.Time(left[0].Score) >= start, left, start)
		expect.Compare(s, task.Time(left[0].Score), "<=", start.Add(0.001))
		entered := s.mustBe(4, task.Running, 0).Rounds[0].Entered
		expect.Compare(s, entered[task.Open], "<=", now)
		expect.Compare(s, entered[task.Running], ">=", entered[task.Open])
		expect.True(s, !s.grace().CheckFuture, "the server still examines tasks with times in the future")
		expect.True(s, !s.server.ahead.busy, "the server still examines tasks with times in the future")
		expect.Equal(s, s.round().Total(), 0, "another round did")
		s.checkConsistent()
	})
}

// If a server dies during the walk through tasks with times in the future, another server continues the walk.
func TestRescoringIsResumed(t *testing.T) {
	t.Parallel()
	onEachClock(t, func(s *leaper) {
		s.round()
		definitions := slices.Repeat([]task.Properties{define()}, 2*aheadPages*aheadSize+300)
		s.open(definitions...)
		s.leap(-3600)
		first := s.round()
		expect.MustEqual(s, first["rescored"], aheadPages*aheadSize)
		expect.MustTrue(s, s.server.ahead.busy, "the first step did", first)
		second := New("second", settings, connect(s.T, s.addr, s.ns), quiet())
		all := first["rescored"]
		for range 4 { // both servers walk, because the first server is still alive
			for _, server := range []*Server{second, s.server} {
				done := expect.Result(server.RunOnce(s.Context())).Value(s)
				all += done["rescored"]
			}
		}
		expect.Equal(s, all, len(definitions))
		expect.True(s, !second.ahead.busy, all, len(definitions), second.ahead.busy, s.server.ahead.busy)
		expect.True(s, !s.server.ahead.busy, all, len(definitions), second.ahead.busy, s.server.ahead.busy)
		expect.True(s, !s.grace().CheckFuture, all, len(definitions), second.ahead.busy, s.server.ahead.busy)
		ids := s.cli.ZRange(s.Context(), s.ns+":open", 0, -1).Val()
		if s.runs && !slices.IsSortedFunc(ids, func(a, b string) int {
			x, _ := strconv.Atoi(a)
			y, _ := strconv.Atoi(b)
			return x - y
		}) {
			s.Error("the open list is not in the order of ids")
		}
		late := s.cli.ZCount(s.Context(), s.ns+":open", "("+s.now().String(), "+inf").Val()
		expect.True(s, late == 0, late, "tasks still have scores in the future")
	})
}

// The clock leaps forward and back again. Meanwhile, neither a claim nor the server expires an open task. After the
// leap back, no open task waits for a time that the clock showed only while the clock was ahead.
func TestNoOpenTaskExpiresWhileTheClockIsAhead(t *testing.T) {
	t.Parallel()
	onEachClock(t, func(s *leaper) {
		s.round()
		late := define()
		late.EndBefore = s.now().Add(1800)
		s.open(late, define(), late)
		expiredOnly := func(when string, want ...int64) {
			s.Helper()
			expect.Equal(s, expect.Result(s.store.List(s.Context(), task.Expired, "", 0, 10)).Value(s), want, when)
		}
		s.leap(3600)
		if ids := s.claimable(); fmt.Sprint(ids) != "[2]" { // this claim happens before the server's round
			s.Errorf("claimed %v", ids)
		}
		expiredOnly("after a claim before the server noticed the leap")
		s.round()
		expiredOnly("after the server noticed the leap")
		s.claimable()
		expiredOnly("after a claim in the grace period")
		s.open(define())
		s.leap(-3600)
		s.round()
		s.round()
		expiredOnly("after the clock leapt back")
		grace := s.grace()
		expect.Compare(s, grace.Running, "<=", s.now().Add(outageGrace+1))
		expect.Compare(s, grace.Open, "<=", s.now().Add(outageGrace+1))
		due := s.cli.ZScore(s.Context(), s.ns+":due", "1").Val()
		expect.True(s, task.Time(due) <= s.mustBe(1, task.Open, 0).EndBefore.Add(1), "task 1 is due at", due, task.Time(due).Sub(late.EndBefore), "after its end")
		expect.Equal(s, fmt.Sprint(s.claimable()), "[1 3 4]", "claimed")
		s.checkConsistent()
	})
}

// After the grace period, a claim and the server expire overdue tasks again.
func TestExpiryGoesOnAfterTheGracePeriod(t *testing.T) {
	t.Parallel()
	onEachClock(t, func(s *leaper) {
		s.round()
		late := define()
		late.EndBefore = s.now().Add(1800)
		s.open(late, late)
		s.leap(3600)
		s.round()
		s.endGrace()
		s.round() // sends a heartbeat
		s.do("ZADD", "$due", s.now().Add(60).String(), 1)
		expect.Len(s, s.claimable(), 0, "claimed")
		for id := range int64(2) {
			s.mustBe(id+1, task.Expired, 0)
		}
		s.checkConsistent()
	})
}

// A worker dies, and then the clock is set back. The worker's task is lost after one lease, although the clock has not
// yet reached the stored end of the lease.
func TestLeasesCountFromNowAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	onEachClock(t, func(s *leaper) {
		expect.Result(s.store.Presence.WorkerHeartbeat(s.Context(), presence.WorkerInfo{Name: "w", Lease: 30})).OK(s) // shorter than its claims
		s.round()
		bounded, byHand := define(), define()
		bounded.Timeout, byHand.Timeout = 500, 500
		s.open(define(), bounded, byHand, define())
		dead := []redisstate.Claim{s.claim(300), s.claim(300)}
		s.claimByHand(3, "0", s.now())
		living := s.claim(300)
		s.leap(-3600)
		renewal := redisstate.LeaseRenewal{ID: living.Task.ID, Claim: living.ID}
		expect.NoError(s, expect.Result(s.store.Renew(s.Context(), 300, renewal)).Value(s).Lost[0])
		kept := s.mustBe(4, task.Running, 0).LeaseUntil
		done := s.round()
		expect.Equal(s, done["rescored"], 3, "the round did", done)
		for _, c := range dead {
			lease := s.mustBe(c.Task.ID, task.Running, 0).LeaseUntil.Sub(s.now())
			expect.Compare(s, lease, "<=", 300, "task", c.Task.ID)
			expect.Compare(s, lease, ">=", 100, "task", c.Task.ID)
		}
		deadline := s.mustBe(2, task.Running, 0).Deadline.Sub(s.now())
		expect.Compare(s, deadline, "<=", 510)
		expect.Compare(s, deadline, ">=", 100)
		entered := s.mustBe(3, task.Running, 0).Rounds[0].Entered[task.Running]
		expect.True(s, entered <= s.now(), "the original's round began at", entered)
		expect.Equal(s, s.mustBe(4, task.Running, 0).LeaseUntil, kept, "the living worker's lease was")
		again := s.round()
		expect.Equal(s, again.Total(), 0)
		expect.True(s, !s.grace().CheckFuture, "another round did", again)
		s.checkConsistent()
	})
}

// A server that starts after the clock was set back notices this from the heartbeat of an earlier server.
func TestStartNoticesThatTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	onEachClock(t, func(s *leaper) {
		s.round()
		s.open(define())
		s.leap(-3600)
		s.server = New("second", settings, connect(s.T, s.addr, s.ns), quiet())
		s.round()
		grace := s.grace()
		expect.Compare(s, grace.Running, ">=", s.now())
		expect.Compare(s, grace.Open, ">=", s.now())
		expect.Len(s, s.claimable(), 1, "claimed")
		expect.Compare(s, expect.Result(s.store.Presence.LastServerHeartbeat(s.Context())).Value(s), "<=", s.now())
	})
}

// The audit finds a score in the future even if no server noticed that the clock was set back.
func TestAuditFindsAScoreInTheFuture(t *testing.T) {
	s := newSite(t)
	s.open(define(), define())
	s.cli.ZIncrBy(s.Context(), s.ns+":open", 3600, "2")
	findings := expect.Result(audit.Of(s.store).Check(s.Context())).Value(s)
	expect.MustLen(s, findings, 1)
	expect.MustEqual(s, findings[0].ID, 2)
	expect.MustEqual(s, findings[0].Repair.Verb, rules.VerbRescore)
	s.round()
	expect.Equal(s, fmt.Sprint(s.claimable()), "[1 2]", "claimed")
	s.checkConsistent()
}

// The audit finds a lease that is too long even if no server noticed that the clock was set back. The lease of a claim may be
// longer than those of all workers.
func TestAuditFindsALeaseInTheFuture(t *testing.T) {
	s := newSite(t)
	expect.Result(s.store.Presence.WorkerHeartbeat(s.Context(), presence.WorkerInfo{Name: "w", Lease: 30})).OK(s)
	s.open(define())
	s.claim(300)
	s.checkConsistent()
	ahead := s.now().Add(3600)
	s.do("HSET", "$task:1", "lease_until", ahead.String())
	s.do("ZADD", "$due", ahead.String(), 1)
	findings := expect.Result(audit.Of(s.store).Check(s.Context())).Value(s)
	expect.MustLen(s, findings, 1)
	expect.MustEqual(s, findings[0].Repair.Verb, rules.VerbRescore)
	s.round()
	lease := s.mustBe(1, task.Running, 0).LeaseUntil.Sub(s.now())
	expect.True(s, lease <= 300, "the lease ends in", lease)
	s.checkConsistent()
}

// Without a recent heartbeat of a server, a claim does not expire overdue tasks. It skips them.
func TestClaimSkipsOverdueTasksWithoutServer(t *testing.T) {
	s := newSite(t)
	s.round()
	s.cli.ZAdd(s.Context(), s.ns+":servers", redis.Z{Score: float64(s.now().Add(-60)), Member: "server"})
	over := define()
	over.EndBefore = s.now().Add(-1)
	s.open(slices.Repeat([]task.Properties{over}, 50)...)
	id := s.open(define())[0]
	expect.Equal(s, fmt.Sprint(s.claimable()), fmt.Sprint([]int64{id}), "claimed", id)
	expect.Equal(s, expect.Result(s.store.Counts(s.Context())).Value(s)[task.Open], 50)
	expect.Equal(s, s.round()["expired"], 50, "the server did")
}
