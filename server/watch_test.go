package server

import (
	"context"
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

func (s *site) judged() {
	s.Helper()
	s.server.watch.calm = 0
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
		if calm := s.server.watch.calm; calm < before.Add(30) || calm > s.now().Add(30) {
			s.Errorf("it began after %v, and is over at %v", before, calm)
		}
		s.judged()
	})
}

func TestGraceIsAtLeastTheLongestLease(t *testing.T) {
	onEach(t, func(s *site) {
		s.do("ZADD", "$servers", (s.now() - 60).String(), "before")
		if _, err := s.store.SeenWorker(s.Context(), redisstate.WorkerInfo{Name: "w", Lease: 300}); err != nil {
			s.Fatal(err)
		}
		before := s.now()
		s.round()
		if calm := s.server.watch.calm; calm < before.Add(300) {
			s.Errorf("it began after %v, and is over at %v", before, calm)
		}
	})
}

func TestNoGraceWhereAnotherServerIs(t *testing.T) {
	onEach(t, func(s *site) {
		s.threeThatAreOver()
		s.do("ZADD", "$servers", s.now().Add(60).String(), "beside") // however late ours looks, it was there a moment ago
		s.judged()
	})
}

func TestGraceAfterClockLeap(t *testing.T) {
	onEach(t, func(s *site) {
		s.round()
		s.threeThatAreOver()
		s.server.watch.clock.at -= 3600 // as if Redis had said so a moment ago
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
				if _, calm, err := w.look(t.Context()); calm != 0 || err != nil {
					t.Errorf("%+v: look %d: calm until %v, %v", slow, look, calm, err)
				}
				time.Sleep(slow.between)
			}
			store.ahead = 10
			if now, calm, err := w.look(t.Context()); calm != now.Add(30) || err != nil {
				t.Errorf("%+v: the clock leapt, and it is calm until %v, %v", slow, calm, err)
			}
		})
	}
}

// A slowStore takes so long until it reads the clock, and so long until it answers.
type slowStore struct {
	before, after time.Duration
	ahead         tdf.Seconds
}

func (s *slowStore) Now(context.Context) (tdf.Time, error) {
	time.Sleep(s.before)
	now := tdf.At(time.Now()).Add(s.ahead)
	time.Sleep(s.after)
	return now, nil
}

func (s *slowStore) Info(context.Context, ...string) (redisstate.Info, error) { return nil, nil }
func (s *slowStore) LastServer(context.Context) (tdf.Time, error)             { return 0, nil }
func (s *slowStore) Calm(context.Context) (tdf.Time, error)                   { return 0, nil }
func (s *slowStore) SetCalm(context.Context, tdf.Time) error                  { return nil }
func (s *slowStore) Outages() int64                                           { return 0 }
func (s *slowStore) Dials() int64                                             { return 0 }

func (s *slowStore) LongestLease(context.Context, tdf.Time) (tdf.Seconds, error) { return 0, nil }

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
		s.server.watch.calm = 0
		s.round()
		s.is(1, tdf.Open, 1)
	})
}
