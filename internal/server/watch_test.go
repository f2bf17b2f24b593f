package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

func renewal(c redisstate.Claim) redisstate.LeaseRenewal {
	return redisstate.LeaseRenewal{ID: c.Task.ID, Round: c.Task.Round, Claim: c.ID}
}

func claimOf(most int) redisstate.ClaimParams {
	return redisstate.ClaimParams{Worker: "w", Most: most, Lease: 60}
}

// openThreeOverdue opens three tasks and lets them run: one will be lost, one will time out and one will expire.
func (s *site) openThreeOverdue() {
	s.Helper()
	slow := define()
	slow.Timeout = 1e-6
	s.open(define(), slow, define())
	for range 3 {
		s.claim(1e-6)
	}
	s.do("HSET", "$task:3", "end_before", s.now().String()) // set after the claim, because a claim does not return an expired task
}

// settlesNothing checks that the tasks of openThreeOverdue still run after a round.
func (s *site) settlesNothing(situation string) {
	s.Helper()
	expect.Equal(s, s.round().Total(), 0, situation, "the round did")
	for id := range int64(3) {
		s.mustBe(id+1, task.Running, 0)
	}
}

// endGrace ends the grace period early.
func (s *site) endGrace() {
	s.Helper()
	s.do("DEL", "$calm")
	s.do("HDEL", "$leap", "until")
}

// grace returns the grace period in Redis.
func (s *site) grace() rules.Grace {
	s.Helper()
	return expect.Result(s.store.Presence.Grace(s.Context())).Value(s)
}

// settlesAll ends the grace period, and checks that a round then settles the tasks of openThreeOverdue.
func (s *site) settlesAll() {
	s.Helper()
	s.endGrace()
	if done := s.round(); done.Total() != 3 { // the tasks were postponed to the end of the grace period, so make them due now
		for id := range int64(3) {
			s.do("ZADD", "$due", "1", id+1)
		}
		s.round()
	}
	s.mustBe(1, task.Open, 1)
	s.mustBe(2, task.TimedOut, 0)
	s.mustBe(3, task.Expired, 0)
}

func TestNoGraceForTheFirstServer(t *testing.T) {
	s := newSite(t)
	s.openThreeOverdue()
	s.settlesAll()
}

func TestGraceAfterTimeWithoutServer(t *testing.T) {
	s := newSite(t)
	s.openThreeOverdue()
	s.do("ZADD", "$servers", (s.now() - 60).String(), "before")
	before := s.now()
	s.settlesNothing("no server had been there for a minute")
	end := s.grace().Running
	expect.Compare(s, end, ">=", before.Add(outageGrace))
	expect.Compare(s, end, "<=", s.now().Add(outageGrace))
	s.settlesAll()
}

func TestGraceIsAtLeastTheLongestLease(t *testing.T) {
	s := newSite(t)
	s.do("ZADD", "$servers", (s.now() - 60).String(), "before")
	expect.Result(s.store.Presence.WorkerHeartbeat(s.Context(), presence.WorkerInfo{Name: "w", Lease: 10 * outageGrace})).OK(s)
	before := s.now()
	s.round()
	end := s.grace().Running
	expect.True(s, end >= before.Add(10*outageGrace), "the grace period began after", before, "and ends at", end)
}

func TestNoGraceBesideAnotherServer(t *testing.T) {
	s := newSite(t)
	s.openThreeOverdue()
	s.do("ZADD", "$servers", s.now().String(), "beside")
	s.settlesAll()
}

func TestGraceAfterClockLeap(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		s.round()
		s.openThreeOverdue()
		s.server.watch.last.clock.at -= 3600 // as if Redis's clock had been an hour behind at the last look
		s.settlesNothing("the clock leapt")
		s.settlesAll()
	})
}

// The server does not mistake a slow Redis, a slow server or a pause of a minute for a leap of the clock.
func TestNoGraceAfterASlowLook(t *testing.T) {
	for _, slow := range []struct{ before, after, between time.Duration }{
		{before: time.Minute}, {after: time.Minute}, {between: time.Minute}, {time.Minute, time.Minute, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &slowStore{}
			w := watch{store: store, grace: 30, log: quiet(), clock: time.Now}
			for look := range 7 { // looks 1, 3 and 5 may be slow; the last look is quick
				store.before, store.after = 0, 0
				if look%2 == 1 {
					store.before, store.after = slow.before, slow.after
				}
				if _, g, err := w.look(t.Context()); g != (rules.Grace{}) || err != nil {
					t.Errorf("%+v: look %d: %+v, %v", slow, look, g, err)
				}
				time.Sleep(slow.between)
			}
			store.ahead = 10
			if now, g, err := w.look(t.Context()); g.Running != now.Add(30) || g.Open != now.Add(30) || err != nil {
				t.Errorf("%+v: after a leap of the clock, the grace period is %+v, %v", slow, g, err)
			}
		})
	}
}

// A slowStore answers after a delay.
type slowStore struct {
	before, after time.Duration // delays of Now: before it reads the clock, and after
	ahead         task.Seconds  // added to the time that Redis's clock shows
	between       time.Duration // delay before LastServerHeartbeat answers; 0 means that no other server exists
	grace         rules.Grace
	fail          string // the call that fails
	info          conn.Info
	primary       string
	dials         int64
}

func (s *slowStore) Replication(conn.Info) conn.Replication {
	return conn.Replication{Primary: s.primary}
}

// The reason of a grace period says whether Redis has restarted, or another one has become the primary.
func TestReasonAfterAnotherRunID(t *testing.T) {
	store := &slowStore{info: conn.Info{"run_id": "a"}, primary: "10.0.0.1:6379"}
	w := watch{store: store, grace: 30, log: quiet(), clock: time.Now}
	look := func() string {
		store.dials++
		seen, e, err := w.observe(t.Context(), reading{before: time.Now(), at: task.At(time.Now()), after: time.Now()})
		expect.NoError(t, err)
		w.last = seen
		return e.why
	}
	expect.Equal(t, look(), "")
	store.info = conn.Info{"run_id": "b"}
	expect.Equal(t, look(), "redis restarted")
	store.info, store.primary = conn.Info{"run_id": "c"}, "10.0.0.2:6379"
	expect.Equal(t, look(), "redis has another primary")
}

var errStore = errors.New("no")

func (s *slowStore) err(call string) error {
	if call == s.fail {
		return errStore
	}
	return nil
}

func (s *slowStore) Now(context.Context) (task.Time, error) {
	time.Sleep(s.before)
	now := task.At(time.Now()).Add(s.ahead)
	time.Sleep(s.after)
	return now, s.err("now")
}

func (s *slowStore) Info(context.Context, ...string) (conn.Info, error) {
	return s.info, s.err("info")
}

func (s *slowStore) LastServerHeartbeat(context.Context) (task.Time, error) {
	if s.between == 0 {
		return 0, s.err("server")
	}
	time.Sleep(s.between)
	return task.At(time.Now()).Add(s.ahead), s.err("server")
}

func (s *slowStore) Grace(context.Context) (rules.Grace, error) { return s.grace, s.err("grace") }

func (s *slowStore) SetGrace(_ context.Context, g rules.Grace) error {
	if err := s.err("set"); err != nil {
		return err
	}
	s.grace = g
	return nil
}

func (s *slowStore) Outages() int64 { return 0 }
func (s *slowStore) Dials() int64   { return s.dials }

func (s *slowStore) LongestLease(context.Context, task.Time) (task.Seconds, error) {
	return 0, s.err("lease")
}

// A server that starts slowly does not mistake another server's heartbeat for a leap of the clock.
func TestNoGraceAfterASlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch{store: &slowStore{between: time.Minute}, grace: 30, log: quiet(), clock: time.Now}
		_, g, err := w.look(t.Context())
		expect.Equal(t, g, rules.Grace{})
		expect.NoError(t, err)
	})
}

// If any of the calls that a look makes fails, the next look notices the same event.
func TestFailedLookIsRepeated(t *testing.T) {
	for _, fail := range []string{"now", "grace", "info", "lease", "set"} {
		synctest.Test(t, func(t *testing.T) {
			store := &slowStore{}
			w := watch{store: store, grace: 30, log: quiet(), clock: time.Now}
			if _, _, err := w.look(t.Context()); err != nil {
				t.Fatal(err)
			}
			store.ahead, store.fail = 3600, fail
			if _, _, err := w.look(t.Context()); !errors.Is(err, errStore) {
				t.Fatalf("call %s fails: look returns %v", fail, err)
			}
			store.fail = ""
			now, g, err := w.look(t.Context())
			expect.Equal(t, g.Running, now.Add(30), "call", fail)
			expect.Equal(t, g.Open, now.Add(30), "call", fail)
			expect.NoError(t, err, "call", fail)
		})
	}
}

// A running server respects a grace period that another server begins.
func TestGraceOfAnotherServerIsKept(t *testing.T) {
	s := newSite(t)
	s.round()
	s.openThreeOverdue()
	expect.NoError(s, s.store.Presence.SetGrace(s.Context(), rules.Grace{Running: s.now().Add(outageGrace)}))
	s.settlesNothing("another server began a grace period")
	s.settlesAll()
}

func TestGraceAfterRedisRestarted(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.AOF("always"))
	s := newSiteAt(t, redis.Addr)
	s.openThreeOverdue()
	if _, _, err := s.server.watch.look(t.Context()); err != nil { // only the server's first look, without settling
		t.Fatal(err)
	}
	redis.Kill()
	redis.Restart()
	s.settlesNothing("redis restarted")
	s.settlesAll()
}

func TestGraceAfterRedisWasAway(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	s := newSiteAt(t, proxy.Addr)
	s.openThreeOverdue()
	_, _, err := s.server.watch.look(t.Context())
	expect.NoError(t, err)
	proxy.Refuse()
	proxy.Cut()
	done := make(chan Done)
	go func() { done <- s.round() }()
	expect.Eventually(t, "the round has noticed the outage", func() bool { return s.store.Conn.Outages() > 0 })
	proxy.Resume()
	expect.Equal(t, (<-done).Total(), 0, "after an outage of Redis, the round did")
	s.settlesAll()
}

// A server that starts during a grace period respects it.
func TestGraceHoldsForNewServers(t *testing.T) {
	s := newSite(t)
	s.openThreeOverdue()
	s.do("ZADD", "$servers", (s.now() - 600).String(), "before")
	s.settlesNothing("no server had been there for a while")
	s.server = New("second", settings, connect(s.T, s.addr, s.ns), quiet())
	s.settlesNothing("the first server began a grace period")
}

// During a grace period, the audit declares no round lost, even if the task of a round is inconsistent.
func TestGraceHoldsForTheAudit(t *testing.T) {
	s := newSite(t)
	s.byHand(1)
	s.claimByHand(1, "0", s.now())
	s.do("ZREM", "$running", "1")
	s.do("ZADD", "$executed", s.now().String(), "1")
	s.do("HSET", "$task:1", "state", "executed")
	s.do("ZADD", "$servers", (s.now() - 60).String(), "before")
	for range 3 {
		expect.MustEqual(s, s.round().Total(), 0, "no server had been there for a minute: the round did")
	}
	s.endGrace()
	s.round()
	s.mustBe(1, task.Open, 1)
}
