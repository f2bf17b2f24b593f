package brokertest

import (
	"fmt"
	"strings"
	"sync"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// claimRows are about which tasks a worker gets.
var claimRows = []row{
	{"one claim in a round", nil, func(s *scene) {
		const n = 6
		ids := map[int64]int{}
		for range n {
			ids[s.open()] = 0
		}
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 3 {
			w := s.worker(fmt.Sprint("w", i))
			all.Go(func() {
				for r := w.claim(); r != nil; r = w.claim() {
					got := r.report(ending{})
					mu.Lock()
					expect.Equal(s, got, accepted)
					ids[r.id()]++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		for id, times := range ids {
			expect.Equal(s, times, 1, "rounds of task", id)
			s.settles(id, "succeeded 0")
		}
	}},
	{"the highest priority first", nil, func(s *scene) {
		var want []int64
		for _, priority := range []int{1, 0, 7} {
			id := s.open(func(d *task.Properties) { d.Priority = priority })
			want = append(want, id)
		}
		w := s.worker("w")
		for _, id := range []int64{want[2], want[0], want[1]} {
			r := s.claim(w)
			expect.Equal(s, r.id(), id)
			s.reports(r, ending{}, accepted)
		}
	}},
	{"only the tasks that it can run", nil, func(s *scene) {
		s.open(func(d *task.Properties) { d.Queue = "other" })
		s.open(func(d *task.Properties) { d.Tags = []string{"gpu"} })
		s.open(func(d *task.Properties) { d.StartAfter = s.now().Add(3600) })
		w := s.worker("w")
		expect.True(s, w.claim() == nil, "claimed a task that is not for the worker")
		id := s.open()
		expect.Equal(s, s.claim(w).id(), id)
	}},
	{"only a task for which it has the time", []need{limits}, func(s *scene) {
		long := s.open(func(d *task.Properties) { d.MinTime = 7200 })
		short := s.open(func(d *task.Properties) { d.MinTime = 600 })
		w := s.worker("w", func(o *offer) { o.timeLimit = 3600 })
		expect.Equal(s, w.register(), "")
		r := s.claim(w)
		expect.Equal(s, r.id(), short)
		s.reports(r, ending{}, accepted)
		expect.Equal(s, s.task(long).State, task.Open)
	}},
	{"only the tasks of a campaign", []need{campaigns}, func(s *scene) {
		s.open(func(d *task.Properties) { d.Group, d.ByGroup = "other", true })
		id := s.open(func(d *task.Properties) { d.Group, d.ByGroup = "g", true })
		w := s.worker("w", func(o *offer) { o.campaign = "g" })
		r := s.claim(w)
		expect.Equal(s, r.id(), id)
		s.reports(r, ending{}, accepted)
		expect.True(s, w.claim() == nil, "claimed a task of another campaign")
	}},
	{"a queue that its token may not use", []need{tokens}, func(s *scene) {
		id := s.open(func(d *task.Properties) { d.Queue = "secret" })
		s.unchanged(func() { s.forbidden(func(o *offer) { o.queue = "secret" }) })
		s.is(id, "open 0")
	}},
	{"an invalid task", nil, func(s *scene) {
		id := s.open(once)
		s.set(s.store.Keys.Task(id), "input", "a 'b") // as another program may write it
		expect.MustTrue(s, s.worker("w").claim() == nil, "an invalid task was handed out")
		expect.Contains(s, s.settles(id, "failed 0 fails 1").LastError(), "quot")
	}},
	{"a numbered claim twice", []need{numbers}, func(s *scene) {
		id, other := s.open(), s.open()
		w := s.worker("w").(*remote)
		r := s.claim(w).(*remoteRound)
		again := w.claimWith(`{"number":1}`).(*remoteRound)
		expect.Equal(s, again.remoteTask, r.remoteTask)
		s.is(id, "running 0")
		s.is(other, "open 0")
		s.reports(r, ending{}, accepted)
	}},
	{"a client goes before it gets its task", []need{calls}, func(s *scene) {
		id := s.open()
		w := s.worker("w")
		for i, with := range []leaving{{first: true}, {last: true}} {
			w.(caller).claimAndGo(with)
			s.is(id, fmt.Sprintf("open %d releases %[1]d", i+1))
		}
		s.reports(s.claim(s.worker("v")), ending{}, accepted)
		s.settles(id, "succeeded 2 releases 2")
	}},
	{"lost replies to a claim", nil, func(s *scene) {
		proxy := s.bad()
		id, other := s.open(), s.open()
		w := s.worker("w")
		dropFirstReplies(proxy)
		r := s.claim(w)
		proxy.Resume()
		expect.Compare(s, proxy.Dropped(), ">", 0)
		expect.Equal(s, r.id(), id)
		s.is(id, "running 0")
		s.is(other, "open 0")
		s.reports(r, ending{}, accepted)
		s.settles(id, "succeeded 0")
	}},
	{"outage during a claim", nil, func(s *scene) {
		proxy := s.bad()
		w := s.worker("w")
		expect.True(s, w.claim() == nil, "claimed nothing") // connects
		id := s.open()
		proxy.Hang()
		got := make(chan round)
		go func() { got <- w.claim() }()
		outage(s, proxy)
		r := <-got
		expect.MustTrue(s, r != nil, "no task was claimed")
		s.is(id, "running 0")
		s.reports(r, ending{}, accepted)
		s.settles(id, "succeeded 0")
	}},
}

// forbidden checks that a worker is refused because of its token.
func (s *scene) forbidden(change func(*offer)) {
	s.Helper()
	w := s.worker("w", change)
	var text string
	switch w := w.(type) {
	case *remote:
		text = w.register()
	case *local:
		text = w.register()
	case *taskmasterWorker:
		_, text = w.call("POST", "/taskmaster/tasks/v1/claim", w.body(""))
	case *skuldClient:
		_, text = w.call("POST", "/skuld/claim", w.body())
	}
	expect.Contains(s, text, "forbidden")
	expect.True(s, strings.Contains(text, "queues"), text)
}
