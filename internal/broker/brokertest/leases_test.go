package brokertest

import (
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// leaseRows are about the leases of claims.
var leaseRows = []row{
	{"a renewal extends the lease", nil, func(s *scene) {
		id := s.open()
		_, r := s.begin("w")
		soon := s.now().Add(30)
		s.set(s.store.Keys.Task(id), "lease_until", soon)
		expect.True(s, r.renew(), "the claim is lost")
		t := s.is(id, "running 0")
		expect.Compare(s, t.LeaseUntil, ">", soon)
		expect.Compare(s, t.LeaseUntil, ">=", s.now().Add(t.Lease-30))
	}},
	{"a renewal never shortens the lease", nil, func(s *scene) {
		id := s.open()
		_, r := s.begin("w")
		until := s.now().Add(1e7)
		s.set(s.store.Keys.Task(id), "lease_until", until, "lease", "20000000")
		expect.True(s, r.renew(), "the claim is lost")
		s.round()
		got := s.is(id, "running 0").LeaseUntil.Sub(until)
		expect.Compare(s, got*got, "<", 1e-6)
	}},
	{"a late renewal", nil, func(s *scene) {
		id := s.open()
		_, r := s.begin("w")
		s.silence() // but no server has seen it
		expect.True(s, r.renew(), "the claim is lost")
		s.round()
		s.is(id, "running 0")
		s.reports(r, ending{}, accepted)
		s.settles(id, "succeeded 0")
	}},
	{"a renewal after the server has decided", nil, func(s *scene) {
		id := s.open()
		_, r := s.begin("w")
		s.silence()
		m, ok := rules.Settle(s.task(id), s.now(), nil)
		expect.True(s, ok, "the task is lost")
		m.Due = expect.Result(s.redis.Do(s.Context(), "ZSCORE", s.store.Keys.Due(), id).Text()).Value(s)
		expect.True(s, r.renew(), "the claim is lost")
		all := expect.Result(s.store.Apply(s.Context(), "server", redisstate.Unit{Moves: []rules.Move{m}})).Value(s)
		expect.Fails(s, all[0].Err, "")
		s.is(id, "running 0")
	}},
	{"a renewal of a lost claim", []need{answers}, func(s *scene) {
		id := s.open()
		_, r := s.begin("w")
		s.silence()
		s.settles(id, "open 1 losses 1")
		s.unchanged(func() {
			expect.True(s, !r.renew(), "the worker does not learn that its claim is lost")
			s.reports(r, ending{}, refused)
		})
	}},
	{"a silent worker", nil, func(s *scene) {
		id := s.open()
		s.begin("w")
		s.silence()
		s.settles(id, "open 1 losses 1")
		s.begin("v")
		s.silence()
		text := s.settles(id, "failed 1 losses 2").LastError()
		for _, round := range []int{0, 1} {
			expect.Contains(s, text, s.task(id).Rounds.At(round).Worker)
		}
	}},
	{"a long lease beside a short one", nil, func(s *scene) {
		id := s.open()
		w := s.worker("w", func(o *offer) { o.lease = s.kind.longest })
		r := s.claim(w)
		until := s.task(id).LeaseUntil
		if s.kind.longest > 0 {
			expect.Compare(s, until, ">", s.now().Add(s.kind.longest-60))
		}
		other := expect.Result(s.store.Open(s.Context(), "test", func() task.Properties {
			d := task.Defaults("p", "", "")
			d.Queue = queue
			return d
		}())).Value(s)[0]
		s.claim(newRemote(s, offer{name: "short", queue: queue, lease: 1}))
		s.set(s.store.Keys.Task(other), "lease_until", s.now().Add(-1))
		s.due(other)
		s.due(id) // so that the server examines the task, too
		s.settles(other, "open 1 losses 1")
		s.round()
		expect.Equal(s, s.is(id, "running 0").LeaseUntil, until)
		s.reports(r, ending{}, accepted)
		s.settles(id, "succeeded 0")
	}},
	{"a time-out", nil, func(s *scene) {
		id := s.open(func(d *task.Properties) { d.Timeout, d.MaxTimeouts = 3600, 1 })
		_, r := s.begin("w")
		s.set(s.store.Keys.Task(id), "deadline", s.now().Add(-60))
		s.due(id)
		s.settles(id, "open 1 timeouts 1")
		s.unchanged(func() { s.reports(r, ending{}, refused) })
	}},
	{"the end of end_before", nil, func(s *scene) {
		id := s.open(func(d *task.Properties) { d.EndBefore = s.now().Add(3600) })
		_, r := s.begin("w")
		s.set(s.store.Keys.Task(id), "end_before", s.now().Add(-60), "deadline", s.now().Add(-60))
		s.due(id)
		s.settles(id, "expired 0")
		s.unchanged(func() { s.reports(r, ending{}, refused) })
	}},
}
