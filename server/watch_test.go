package server

import (
	"testing"

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
	slow, late := define(), define()
	slow.Timeout = 1e-6
	late.EndBefore = s.now().Add(0.2)
	s.open(define(), slow, late)
	for range 3 {
		s.claim(1e-6)
	}
	for s.now() < late.EndBefore {
	}
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
		s.leftAlone("no server had been there for a minute")
		if grace := s.server.watch.calm.Sub(s.now()); grace < 25 || grace > 30 {
			s.Errorf("the grace is %v s", grace)
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
		s.round()
		if grace := s.server.watch.calm.Sub(s.now()); grace < 290 {
			s.Errorf("the grace is %v s", grace)
		}
	})
}

func TestNoGraceWhereAnotherServerIs(t *testing.T) {
	onEach(t, func(s *site) {
		s.do("ZADD", "$servers", (s.now() - 1).String(), "beside")
		s.threeThatAreOver()
		s.judged()
	})
}

func TestGraceAfterClockLeap(t *testing.T) {
	onEach(t, func(s *site) {
		s.round()
		s.threeThatAreOver()
		s.server.watch.clock -= 3600 // as if Redis had said so a moment ago
		s.leftAlone("the clock leapt")
		s.judged()
	})
}

func TestGraceAfterRedisStartedAnew(t *testing.T) {
	redis := redistest.Start(t, redistest.AOF("always"))
	s := newSite(t, redis.Addr)
	s.threeThatAreOver()
	if _, err := s.server.watch.calmUntil(t.Context(), s.now()); err != nil { // it is there, and has not judged yet
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
	if _, err := s.server.watch.calmUntil(t.Context(), s.now()); err != nil {
		t.Fatal(err)
	}
	proxy.Refuse()
	proxy.Cut()
	done := make(chan Done)
	go func() { done <- s.round() }()
	for s.store.Outages() == 0 {
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
