package server

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
)

func TestRoundSettlesDueTasks(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		good, bad, slow, late, lost, waiting := define(), define(), define(), define(), define(), define()
		slow.Timeout = 1e-6
		late.EndBefore = s.now() - 1
		s.open(good, bad, slow)
		good1, bad1 := s.claim(60), s.claim(60)
		s.claim(1e-6)
		s.open(late)
		s.open(lost)
		s.cli.ZRem(s.Context(), s.ns+":open", 4) // remove the late task from the open list, so that no claim expires it
		s.claim(1e-6)
		s.do("ZADD", "$open", "0", "4")
		s.open(waiting)
		s.execute(good1, rules.Result{Exit: "0"})
		s.execute(bad1, rules.Result{Exit: "1", Error: "boom"})
		done := s.round()
		s.mustBe(1, task.Succeeded, 0)
		s.mustBe(2, task.Failed, 0)
		s.mustBe(3, task.TimedOut, 0)
		s.mustBe(4, task.Expired, 0)
		one := s.mustBe(5, task.Open, 1)
		expect.Equal(s, one.Losses, 1)
		expect.Contains(s, one.Log, "lost with its worker w")
		s.mustBe(6, task.Open, 0)
		expect.Equal(s, done.Total(), 5)
		expect.Equal(s, done["reopened"], 1)
		expect.Equal(s, s.round().Total(), 0, "another round did")
		s.checkConsistent()
	})
}

func TestManyDueTasksAreSettledInOneRound(t *testing.T) {
	s := newSite(t)
	var definitions []task.Properties
	for range 1234 {
		d := define()
		d.EndBefore = 5
		d.StartAfter = 1
		definitions = append(definitions, d)
	}
	s.open(definitions...)
	expect.Equal(s, s.round()["expired"], 1234, "the round did")
}

// If a lease is renewed after the server's decision, the decision has no effect.
func TestRenewalVoidsADecision(t *testing.T) {
	s := newSite(t)
	s.open(define())
	c := s.claim(1e-6)
	due := expect.Result(s.store.DueTasks(s.Context(), s.now(), 10)).Value(s)
	expect.MustLen(s, due, 1)
	moves := expect.Result(s.server.decide(s.Context(), due, s.now(), rules.Grace{})).Value(s)
	expect.MustEqual(s, moves[0].Verb, rules.VerbLose)
	expect.NoError(s, expect.Result(s.store.Renew(s.Context(), 60, renewal(c))).Value(s).Lost[0])
	done := Done{}
	expect.NoError(s, s.server.apply(s.Context(), moves, done))
	expect.Equal(s, done.Total(), 0)
	s.mustBe(1, task.Running, 0)
}

func TestSeveralServers(t *testing.T) {
	t.Parallel()
	addr := redistest.Shared(t)
	s := newSiteAt(t, addr)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	for range 4 {
		server := New("server", config.Server{RoundDuration: time.Hour}, connect(t, addr, s.ns), quiet())
		go func() { ended <- server.Run(ctx) }()
	}
	const tasks = 300
	for range tasks {
		d := define()
		d.MaxFails = 1
		s.open(d)
	}
	for n := 0; n < 2*tasks; { // each task fails twice
		c := expect.Result(s.store.Claim(ctx, claimOf(10))).Value(t)
		for _, claim := range c.Claims {
			s.execute(claim, rules.Result{Error: "boom"})
			n++
		}
	}
	expect.Eventually(t, "all tasks have failed", func() bool {
		counts := expect.Result(s.store.Counts(ctx)).Value(t)
		return counts[task.Failed] == tasks
	})
	stop()
	for range 4 {
		expect.NoError(t, endOf(t, ended))
	}
	for id := range int64(tasks) {
		expect.Equal(t, s.mustBe(id+1, task.Failed, 1).Fails, 2, "task", id+1, "failed … times")
	}
	s.checkConsistent()
}

// endOf waits until Run of a server ends, and returns its error.
func endOf(t *testing.T, ended <-chan error) (err error) {
	t.Helper()
	expect.Eventually(t, "the server's end", func() bool {
		select {
		case err = <-ended:
			return true
		default:
			return false
		}
	})
	return err
}

// Results and due times wake a waiting server. The round_duration is an hour, so nothing else can wake the server in
// this test.
func TestServerIsWoken(t *testing.T) {
	s := newSite(t)
	ctx, stop := context.WithCancel(s.Context())
	ended := make(chan error)
	server := New("server", config.Server{RoundDuration: time.Hour}, s.store, quiet())
	go func() { ended <- server.Run(ctx) }()
	expect.Eventually(s, "the server's first heartbeat", func() bool {
		last := expect.Result(s.store.Presence.LastServerHeartbeat(ctx)).Value(s)
		return last > 0
	})
	brief := define()
	brief.EndBefore = s.now().Add(0.5)
	s.open(define(), brief)
	c := s.claim(60)
	s.execute(c, rules.Result{Exit: "0"})
	expect.Eventually(s, "both tasks have ended", func() bool {
		counts := expect.Result(s.store.Counts(ctx)).Value(s)
		return counts[task.Succeeded] == 1 && counts[task.Expired] == 1
	})
	stop()
	expect.NoError(s, endOf(s.T, ended))
}

// A server sends heartbeats during a long round.
func TestHeartbeatsWithinARound(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	server := New("server", config.Server{RoundDuration: time.Hour}, s.store, quiet())
	go func() { ended <- server.Run(ctx) }()
	var heartbeats []task.Time
	expect.Eventually(t, "a second heartbeat", func() bool {
		last := expect.Result(s.store.Presence.LastServerHeartbeat(ctx)).Value(t)
		if last > 0 && !slices.Contains(heartbeats, last) {
			heartbeats = append(heartbeats, last)
		}
		return len(heartbeats) > 1
	})
	stop()
	expect.NoError(t, endOf(t, ended))
}

// The claim script and the server agree whether a property is valid. If they disagreed, a task that only one of them
// rejects would be postponed forever.
func TestClaimAndServerAgreeOnProperties(t *testing.T) {
	s := newSite(t)
	id := 0
	for property, values := range map[string][]string{
		"round":       {"", "0", "00", "+0", " 0", "0x0", "1e0", "-0"},
		"start_after": {"", "5", "5.", ".5", "+5", " 5", "5 ", "5e0", "5E0", "9e+02", "0x5", "0x1p4", "1_0", "0x_5", "-0", "1e", "five"},
		"end_before":  {"", "9e9", "9E+9", "9.0e9", "inf", "INF", "+inf", "Infinity", "nan", "0x1p40", "9_0", "1e400", "99999999999999999999"},
		"timeout":     {"", "3e1", "30", "inf", "+Inf", "infinity", "0x10", "0"},
		"max_fails":   {"", "0", "00", "1e0", "0x1"},
	} {
		for _, value := range values {
			id++
			s.byHand(id, property, value)
			c := expect.Result(s.store.Claim(s.Context(), claimOf(1))).Value(s)
			s.round()
			state := s.do("HGET", "$task:"+itoa(id), "state")
			claimed := len(c.Claims) == 1
			expect.Equal(s, claimed, state == string(task.Running), property, "=", value)
			if !claimed {
				expect.Equal[any](s, state, string(task.Failed), property, "=", value)
			}
			s.do("DEL", "$task:"+itoa(id))
			for _, list := range []string{"open", "due", "running", "failed"} {
				s.do("ZREM", "$"+list, id)
			}
		}
	}
}

// The server settles due tasks with large inputs even over a slow connection.
func TestSettlesOverASlowLink(t *testing.T) {
	t.Parallel() // the test only waits
	s := newSite(t)
	large := task.Defaults("p", "rsync:/p/run.sh", strings.Repeat("x", 100<<10))
	large.EndBefore = s.now().Add(0.001)
	s.open(large, large)
	proxy := redistest.NewProxy(t, s.addr)
	slow := New("server", settings, connect(t, proxy.Addr, s.ns), quiet())
	proxy.Limit(32 << 10)
	expect.Equal(t, expect.Result(slow.RunOnce(t.Context())).Value(t)["expired"], 2)
}
