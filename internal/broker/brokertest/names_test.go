package brokertest

import (
	"strings"
	"sync"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// nameRows are about the names of workers.
var nameRows = []row{
	{"the name of a living worker", []need{starts}, func(s *scene) {
		id := s.open()
		w := s.starts("w")
		r := s.claim(w)
		before := s.registration("w")
		expect.Contains(s, s.worker("w").register(), "belongs to a worker")
		expect.Equal(s, s.registration("w"), before)
		s.is(id, "running 0")
		s.reports(r, ending{}, accepted)
	}},
	{"the name of a silent worker", []need{starts}, func(s *scene) {
		id := s.open()
		w := s.starts("w")
		s.claim(w)
		s.silence()
		s.set(s.store.Keys.Task(id), "lease_until", s.now().Add(3600)) // only the name is free
		s.round()
		v := s.starts("w")
		s.round()
		expect.Equal(s, s.task(id).Losses, 1) // v may have it already
		expect.Eventually(s, "the first start learns that it has lost its name", func() bool { return !w.beat() })
		s.reports(s.claim(v), ending{}, accepted)
		expect.Eventually(s, "the task succeeds", func() bool { // w may have claimed and released it before it learned
			s.round()
			got := summary(s.task(id))
			return strings.HasPrefix(got, "succeeded ") && strings.Contains(got, " losses 1")
		}, func() any { return summary(s.task(id)) })
	}},
	{"a worker signs off", []need{starts}, func(s *scene) {
		w := s.starts("w")
		w.signOff()
		expect.Equal(s, s.registration("w").State, "gone")
		id := s.open()
		r := s.claim(s.starts("w"))
		s.reports(r, ending{}, accepted)
		s.settles(id, "succeeded 0")
	}},
	{"a drained worker", []need{names}, func(s *scene) {
		first := s.open()
		w := s.starts("w")
		r := s.claim(w)
		expect.True(s, expect.Result(s.store.Presence.Drain(s.Context(), s.registered("w"), "me")).Value(s), "drained")
		expect.True(s, w.beat(), "the worker learns it")
		l, asks := w.(*local)
		expect.Eventually(s, "the worker has read the answer", func() bool {
			return !asks || strings.Contains(l.log.String(), "draining by order")
		})
		second := s.open()
		s.reports(r, ending{}, accepted) // its tasks end
		s.settles(first, "succeeded 0")
		if !asks {
			expect.True(s, w.claim() == nil, "a drained worker has got a task")
		}
		s.is(second, "open 0")
	}},
	{"two heartbeats at once", []need{names, beats}, func(s *scene) {
		w := s.starts("w")
		before := s.registration("w")
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { expect.True(s, w.beat(), "the name is lost") })
		}
		all.Wait()
		after := s.registration("w")
		expect.Compare(s, after.Seen, ">", before.Seen)
		after.Seen = before.Seen
		expect.Equal(s, after, before)
	}},
	{"the name of another interface", []need{shared}, func(s *scene) {
		w := s.starts("w")
		before := s.registration("w")
		for _, k := range kinds {
			if k != s.kind && k.lacks[shared] == "" {
				v := k.worker(s, offer{name: "w", queue: queue})
				expect.Contains(s, v.register(), `"code":"taken"`, k.name)
				expect.True(s, !v.beat(), "the heartbeat of another worker is accepted")
			}
		}
		expect.Equal(s, s.registration("w"), before)
		expect.True(s, w.beat(), "the name is lost")
	}},
}

// starts returns a worker that has taken its name.
func (s *scene) starts(name string) worker {
	s.Helper()
	w := s.worker(name)
	expect.MustEqual(s, w.register(), "", "register", name)
	return w
}

// registered returns the name of a worker in Redis.
func (s *scene) registered(name string) string {
	if s.kind.lacks[tokens] != "" {
		return name
	}
	return "pool/" + name
}

// registration returns what Redis has about a worker.
func (s *scene) registration(name string) presence.WorkerStatus {
	s.Helper()
	w, known, _, err := s.store.Presence.Worker(s.Context(), s.registered(name))
	expect.NoError(s, err)
	expect.True(s, known, "worker", name)
	return w
}
