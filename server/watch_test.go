package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate"
)

func renewal(c redisstate.Claim) redisstate.Renewal {
	return redisstate.Renewal{ID: c.Task.ID, Round: c.Task.Round, Claim: c.ID, Until: tdf.Never}
}

func claimOf(most int) redisstate.ClaimRequest {
	return redisstate.ClaimRequest{Worker: "w", Most: most, Lease: 60}
}

// threeThatAreOver opens tasks that would be lost, timed out and expired at once.
func (s *site) threeThatAreOver() {
	s.Helper()
	slow := define()
	slow.Timeout = 1e-6
	s.open(define(), slow, define())
	for range 3 {
		s.claim(1e-6)
	}
	s.do("HSET", "$task:3", "end_before", s.now().String()) // only now: a late one would not be claimed
}

func (s *site) leftAlone(why string) {
	s.Helper()
	if done := s.round(); done.Total() != 0 {
		s.Errorf("%s, and the round did %v", why, done)
	}
	for id := range int64(3) {
		s.is(id+1, tdf.Running, 0)
	}
}

// graceIsOver ends the grace period, as if it had lasted long enough.
func (s *site) graceIsOver() {
	s.Helper()
	s.do("DEL", "$calm")
	s.do("HDEL", "$leap", "until")
}

// grace returns the grace period that Redis keeps.
func (s *site) grace() redisstate.Grace {
	s.Helper()
	g, err := s.store.Grace(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return g
}

func (s *site) judged() {
	s.Helper()
	s.graceIsOver()
	if done := s.round(); done.Total() != 3 { // what was put off is due at the end of the grace
		for id := range int64(3) {
			s.do("ZADD", "$due", "1", id+1)
		}
		s.round()
	}
	s.is(1, tdf.Open, 1)
	s.is(2, tdf.TimedOut, 0)
	s.is(3, tdf.Expired, 0)
}

func TestFirstServerWaitsForNobody(t *testing.T) {
	onEach(t, func(s *site) {
		s.threeThatAreOver()
		s.judged()
	})
}

func TestGraceAfterTheLastServerWasGone(t *testing.T) {
	onEach(t, func(s *site) {
		s.threeThatAreOver()
		s.do("ZADD", "$servers", (s.now() - 60).String(), "before")
		before := s.now()
		s.leftAlone("no server had been there for a minute")
		if calm := s.grace().Running; calm < before.Add(30) || calm > s.now().Add(30) {
			s.Errorf("it began after %v, and is over at %v", before, calm)
		}
		s.judged()
	})
}

func TestGraceIsAtLeastTheLongestLease(t *testing.T) {
	onEach(t, func(s *site) {
		s.do("ZADD", "$servers", (s.now() - 60).String(), "before")
		if _, err := s.store.WorkerHeartbeat(s.Context(), redisstate.WorkerInfo{Name: "w", Lease: 300}); err != nil {
			s.Fatal(err)
		}
		before := s.now()
		s.round()
		if calm := s.grace().Running; calm < before.Add(300) {
			s.Errorf("it began after %v, and is over at %v", before, calm)
		}
	})
}

func TestNoGraceWhereAnotherServerIs(t *testing.T) {
	onEach(t, func(s *site) {
		s.threeThatAreOver()
		s.do("ZADD", "$servers", s.now().String(), "beside")
		s.judged()
	})
}

func TestGraceAfterClockLeap(t *testing.T) {
	onEach(t, func(s *site) {
		s.round()
		s.threeThatAreOver()
		s.server.watch.last.clock.at -= 3600 // as if Redis had said so a moment ago
		s.leftAlone("the clock leapt")
		s.judged()
	})
}

// A clock that leaps is told from a Redis or a server that is slow, or was stopped for a minute.
func TestNoGraceAfterASlowLook(t *testing.T) {
	for _, slow := range []struct{ before, after, between time.Duration }{
		{before: time.Minute}, {after: time.Minute}, {between: time.Minute}, {time.Minute, time.Minute, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &slowStore{}
			w := watch{store: store, grace: 30, log: quiet()}
			for look := range 7 { // the last one is quick
				store.before, store.after = 0, 0
				if look%2 == 1 {
					store.before, store.after = slow.before, slow.after
				}
				if _, g, err := w.look(t.Context()); g != (redisstate.Grace{}) || err != nil {
					t.Errorf("%+v: look %d: %+v, %v", slow, look, g, err)
				}
				time.Sleep(slow.between)
			}
			store.ahead = 10
			if now, g, err := w.look(t.Context()); g.Running != now.Add(30) || g.Open != now.Add(30) || err != nil {
				t.Errorf("%+v: the clock leapt, and the grace period is %+v, %v", slow, g, err)
			}
		})
	}
}

// A slowStore takes so long until it reads the clock, and so long until it answers.
type slowStore struct {
	before, after time.Duration
	ahead         tdf.Seconds
	between       time.Duration // until another server is seen, which is there all the time; 0: there is none
	grace         redisstate.Grace
	fail          string // the call that fails
}

var errStore = errors.New("no")

func (s *slowStore) err(call string) error {
	if call == s.fail {
		return errStore
	}
	return nil
}

func (s *slowStore) Now(context.Context) (tdf.Time, error) {
	time.Sleep(s.before)
	now := tdf.At(time.Now()).Add(s.ahead)
	time.Sleep(s.after)
	return now, s.err("now")
}

func (s *slowStore) Info(context.Context, ...string) (redisstate.Info, error) {
	return nil, s.err("info")
}

func (s *slowStore) LastServerHeartbeat(context.Context) (tdf.Time, error) {
	if s.between == 0 {
		return 0, s.err("server")
	}
	time.Sleep(s.between)
	return tdf.At(time.Now()).Add(s.ahead), s.err("server")
}

func (s *slowStore) Grace(context.Context) (redisstate.Grace, error) { return s.grace, s.err("grace") }

func (s *slowStore) SetGrace(_ context.Context, g redisstate.Grace) error {
	if err := s.err("set"); err != nil {
		return err
	}
	s.grace = g
	return nil
}

func (s *slowStore) Outages() int64 { return 0 }
func (s *slowStore) Dials() int64   { return 0 }

func (s *slowStore) LongestLease(context.Context, tdf.Time) (tdf.Seconds, error) {
	return 0, s.err("lease")
}

// A server that starts slowly beside another one does not take its heartbeats for a leap.
func TestNoGraceAfterASlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch{store: &slowStore{between: time.Minute}, grace: 30, log: quiet()}
		if _, g, err := w.look(t.Context()); g != (redisstate.Grace{}) || err != nil {
			t.Errorf("%+v, %v", g, err)
		}
	})
}

// A look that fails, at whatever step, does not lose the event: the next one finds it.
func TestALookThatFailsIsMadeAgain(t *testing.T) {
	for _, fail := range []string{"now", "grace", "info", "lease", "set"} {
		synctest.Test(t, func(t *testing.T) {
			store := &slowStore{}
			w := watch{store: store, grace: 30, log: quiet()}
			if _, _, err := w.look(t.Context()); err != nil {
				t.Fatal(err)
			}
			store.ahead, store.fail = 3600, fail
			if _, _, err := w.look(t.Context()); !errors.Is(err, errStore) {
				t.Fatalf("%s fails: %v", fail, err)
			}
			store.fail = ""
			if now, g, err := w.look(t.Context()); g.Running != now.Add(30) || g.Open != now.Add(30) || err != nil {
				t.Errorf("%s failed once: the grace period is %+v, %v", fail, g, err)
			}
		})
	}
}

// A server that runs keeps the grace period that another one begins.
func TestGraceOfAnotherServerIsKept(t *testing.T) {
	onEach(t, func(s *site) {
		s.round()
		s.threeThatAreOver()
		if err := s.store.SetGrace(s.Context(), redisstate.Grace{Running: s.now().Add(30)}); err != nil {
			s.Fatal(err)
		}
		s.leftAlone("another server waits")
		s.judged()
	})
}

func TestGraceAfterRedisStartedAnew(t *testing.T) {
	redis := redistest.Start(t, redistest.AOF("always"))
	s := newSite(t, redis.Addr)
	s.threeThatAreOver()
	if _, _, err := s.server.watch.look(t.Context()); err != nil { // it is there, and has not judged yet
		t.Fatal(err)
	}
	redis.Kill()
	redis.Restart()
	s.leftAlone("redis started anew")
	s.judged()
}

func TestGraceAfterRedisWasAway(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	s := newSite(t, proxy.Addr)
	s.threeThatAreOver()
	if _, _, err := s.server.watch.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	proxy.Refuse()
	proxy.Cut()
	done := make(chan Done)
	go func() { done <- s.round() }()
	for s.store.Outages() == 0 {
		time.Sleep(time.Millisecond)
	}
	proxy.Resume()
	if did := <-done; did.Total() != 0 {
		t.Errorf("redis was away, and the round did %v", did)
	}
	s.judged()
}

// A server that starts during the grace of another one, or of its own earlier self, keeps it.
func TestGraceIsEveryServers(t *testing.T) {
	onEach(t, func(s *site) {
		s.threeThatAreOver()
		s.do("ZADD", "$servers", (s.now() - 600).String(), "before")
		s.leftAlone("no server had been there for a while")
		s.server = New("second", settings, connect(s.T, s.addr, s.ns), quiet())
		s.leftAlone("the first one waits")
	})
}

// Also what the audit would lose has to wait: a torn round whose worker may not have been heard.
func TestGraceIsTheAuditsToo(t *testing.T) {
	onEach(t, func(s *site) {
		s.byHand(1)
		s.claimByHand(1, "0", s.now())
		s.do("ZREM", "$running", "1")
		s.do("ZADD", "$executed", s.now().String(), "1")
		s.do("HSET", "$task:1", "state", "executed")
		s.do("ZADD", "$servers", (s.now() - 60).String(), "before")
		for range 3 {
			if done := s.round(); done.Total() != 0 {
				s.Fatalf("no server had been there for a minute, and the round did %v", done)
			}
		}
		s.graceIsOver()
		s.round()
		s.is(1, tdf.Open, 1)
	})
}
