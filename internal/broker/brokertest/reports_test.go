package brokertest

import (
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// once lets the next round that fails be the last one.
func once(d *task.Properties) { d.MaxFails = 0 }

// reportRows are about what a report does.
var reportRows = []row{
	{"completes", nil, func(s *scene) {
		id := s.open()
		_, r := s.begin("w")
		expect.Equal(s, r.id(), id)
		s.is(id, "running 0")
		s.reports(r, ending{result: `{"n":[1]}`}, accepted)
		t := s.settles(id, "succeeded 0")
		expect.Equal(s, t.Current().Exit, "0")
		expect.Equal(s, t.Current().Result, `{"n":[1]}`)
		expect.Contains(s, t.Log, t.Current().Worker)
		expect.True(s, s.worker("v").claim() == nil, "a finished task is claimed")
	}},
	{"fails and runs again", []need{failures}, func(s *scene) {
		id := s.open()
		w, r := s.begin("w")
		s.reports(r, ending{fails: "boom"}, accepted)
		t := s.settles(id, "open 1 fails 1")
		expect.Contains(s, t.Rounds.At(0).Error, "boom")
		expect.Equal(s, t.Rounds.At(0).Exit, "1")
		s.reports(s.claim(w), ending{}, accepted)
		s.settles(id, "succeeded 1 fails 1")
	}},
	{"fails for the last time", []need{failures}, func(s *scene) {
		id := s.open(once)
		_, r := s.begin("w")
		s.reports(r, ending{fails: "boom"}, accepted)
		expect.Contains(s, s.settles(id, "failed 0 fails 1").LastError(), "boom")
	}},
	{"fails for good", []need{verdicts}, func(s *scene) {
		id := s.open()
		_, r := s.begin("w")
		s.reports(r, ending{fails: "boom", permanent: true}, accepted)
		expect.Contains(s, s.settles(id, "failed 0 fails 1").LastError(), "boom")
	}},
	{"given back", []need{returns}, func(s *scene) {
		id := s.open()
		_, r := s.begin("w")
		s.reports(r, ending{returned: true, fails: "the worker stops"}, accepted)
		expect.Contains(s, s.is(id, "open 1 releases 1").Log, "released: the worker stops")
		s.reports(s.claim(s.worker("v")), ending{}, accepted)
		s.settles(id, "succeeded 1 releases 1")
	}},
	{"given back in the last round", []need{returns}, func(s *scene) {
		id := s.open()
		_, r := s.beginIn(id, task.MaxRound)
		s.reports(r, ending{returned: true, fails: "the worker stops"}, acceptedAsFailed)
		t := s.settles(id, fmt.Sprintf("failed %d fails 1 reopens %[1]d", task.MaxRound))
		expect.Contains(s, t.LastError(), "cannot be released")
	}},
	{"put off", []need{verdicts}, func(s *scene) {
		id, before := s.open(), s.now()
		w, r := s.begin("w")
		s.reports(r, ending{fails: "no licence", later: 3600}, accepted)
		t := s.is(id, "open 1 releases 1")
		expect.Contains(s, t.Log, "no licence")
		expect.Compare(s, t.Ready, ">=", before.Add(3600))
		expect.True(s, w.claim() == nil, "claimed before its time")
	}},
	{"put off in the last round", []need{verdicts}, func(s *scene) {
		id := s.open()
		_, r := s.beginIn(id, task.MaxRound)
		s.reports(r, ending{fails: "no licence", later: 3600}, acceptedAsFailed)
		t := s.settles(id, fmt.Sprintf("failed %d fails 1 reopens %[1]d", task.MaxRound))
		expect.Contains(s, t.LastError(), "no licence, and the task cannot be released")
	}},
	{"unfit while another worker is busy", []need{verdicts}, func(s *scene) {
		id := s.open(once)
		offer := class.Offer{Queues: []class.QueueShare{{Queue: queue}}, Handlers: []string{"p"}, Programs: true}
		good := presence.WorkerInfo{Name: "good", Boot: "b", State: presence.WorkerWorking, Lease: 3600, Offer: offer}
		_, _, err := s.store.Presence.TakeName(s.Context(), good, presence.PriorOwner{})
		expect.NoError(s, err)
		for i := range 4 {
			_, r := s.begin(fmt.Sprint("w", i))
			s.reports(r, ending{fails: "no gpu", unfit: true}, accepted)
			s.is(id, fmt.Sprintf("open %d releases %[1]d", i+1))
			s.startsElsewhere(id)
		}
		s.set(s.store.Keys.Worker("good"), "state", presence.WorkerGone)
		_, r := s.begin("w5")
		s.reports(r, ending{fails: "no gpu", unfit: true}, accepted)
		s.is(id, "open 5 releases 5 unfit 1")
	}},
	{"unfit", []need{verdicts}, func(s *scene) {
		id := s.open(once)
		for i := range 3 {
			_, r := s.begin(fmt.Sprint("w", i))
			s.reports(r, ending{fails: "no gpu", unfit: true}, accepted)
			t := s.is(id, fmt.Sprintf("open %d releases %[1]d unfit %[1]d", i+1))
			expect.Contains(s, t.Log, "no gpu")
			s.startsElsewhere(id)
		}
		_, r := s.begin("w4")
		s.reports(r, ending{fails: "no gpu", unfit: true}, acceptedAsFailed)
		expect.Contains(s, s.settles(id, "failed 3 fails 1 releases 3 unfit 3").LastError(), "no gpu")
	}},
	{"late report", nil, func(s *scene) {
		id := s.open()
		_, late := s.begin("w")
		s.silence()
		s.settles(id, "open 1 losses 1")
		_, r := s.begin("v")
		s.unchanged(func() { s.reports(late, ending{result: `"late"`}, refused) })
		s.reports(r, ending{result: `"in time"`}, accepted)
		expect.Equal(s, s.settles(id, "succeeded 1 losses 1").Current().Result, `"in time"`)
	}},
	{"report after the lease", nil, func(s *scene) {
		id := s.open()
		_, r := s.begin("w")
		s.silence() // but no server has seen it
		s.reports(r, ending{}, accepted)
		s.settles(id, "succeeded 0")
	}},
	{"report after a cancel", nil, func(s *scene) {
		id := s.open()
		_, r := s.begin("w")
		s.apply(rules.Cancel(s.task(id)))
		s.unchanged(func() { s.reports(r, ending{}, refused) })
		s.is(id, "expired 0")
	}},
	{"report after a requeue", nil, func(s *scene) {
		id := s.open()
		_, r := s.begin("w")
		s.apply(rules.Requeue(s.task(id), false))
		s.unchanged(func() { s.reports(r, s.opening("late"), refused) })
		s.is(id, "open 1 releases 1")
	}},
	{"report of a removed task", nil, func(s *scene) {
		id := s.open()
		_, r := s.begin("w")
		s.apply(rules.Cancel(s.task(id)))
		s.apply(rules.Remove(s.task(id)))
		s.unchanged(func() { s.reports(r, ending{}, refused) })
		expect.Equal(s, s.count(), 0)
	}},
	{"the same report twice", []need{copies}, func(s *scene) {
		id := s.open()
		_, r := s.begin("w")
		s.reports(r, ending{result: "1"}, accepted)
		s.settles(id, "succeeded 0")
		s.unchanged(func() { s.reports(r, ending{result: "1"}, accepted) })
	}},
	{"the opposite report", []need{failures, calls}, func(s *scene) {
		id := s.open()
		_, r := s.begin("w")
		s.reports(r, ending{}, accepted)
		s.unchanged(func() { s.reports(r, ending{fails: "boom"}, refused) })
		s.settles(id, "succeeded 0")
		s.unchanged(func() { s.reports(r, ending{fails: "boom"}, refused) })
	}},
	{"lost replies to a report", nil, func(s *scene) {
		proxy := s.bad()
		id := s.open()
		_, r := s.begin("w")
		dropFirstReplies(proxy)
		e := s.opening("a", "b")
		e.result = "1"
		s.reports(r, e, accepted)
		proxy.Resume()
		expect.Equal(s, s.settles(id, "succeeded 0").Current().Result, "1")
		expect.Equal(s, s.count(), 1+len(e.opens), "tasks")
		expect.Compare(s, proxy.Dropped(), ">", 0)
	}},
	{"outage during a report", nil, func(s *scene) {
		proxy := s.bad()
		id := s.open()
		_, r := s.begin("w")
		proxy.Hang()
		got := make(chan answer)
		go func() { got <- r.report(ending{}) }()
		outage(s, proxy)
		expect.Equal(s, <-got, accepted)
		s.settles(id, "succeeded 0")
	}},
	{"report to a full Redis", nil, func(s *scene) {
		s.on(redistest.Start(s).Addr)
		id := s.open()
		_, r := s.begin("w")
		expect.NoError(s, s.redis.ConfigSet(s.Context(), "maxmemory", "1").Err())
		s.reports(r, ending{result: "1"}, accepted)
		s.settles(id, "succeeded 0")
	}},
	{"too large a result", nil, func(s *scene) {
		s.spoils(ending{result: `"` + strings.Repeat("x", 1<<20) + `"`}, "1048576")
	}},
	{"a result that is no JSON", nil, func(s *scene) { s.spoils(ending{result: `{"n":`}, "JSON") }},
	{"a result that is not UTF-8", nil, func(s *scene) { s.spoils(ending{result: "\"\xff\""}, "UTF-8") }},
	{"opens tasks", []need{opens}, func(s *scene) {
		id := s.open(func(d *task.Properties) { d.Group = "g" })
		_, r := s.begin("w")
		s.reports(r, ending{opens: defined("a", "b")}, accepted)
		expect.Equal(s, s.count(), 3, "the result and the new tasks are one step")
		s.settles(id, "succeeded 0")
		child := s.is(id+1, "open 0")
		expect.Equal(s, child.Input+child.Group+child.Program, "agp")
	}},
	{"opens nothing after a failure", []need{opens}, func(s *scene) {
		id := s.open()
		w, r := s.begin("w")
		s.reports(r, ending{fails: "boom", opens: defined("a")}, accepted)
		s.settles(id, "open 1 fails 1")
		expect.Equal(s, s.count(), 1)
		s.reports(s.claim(w), ending{opens: defined("a")}, accepted) // the next round
		s.settles(id, "succeeded 1 fails 1")
		expect.Equal(s, s.count(), 2)
	}},
	{"opens tasks in a full Redis", []need{opens}, func(s *scene) {
		s.on(redistest.Start(s).Addr)
		id := s.open()
		_, r := s.begin("w")
		expect.NoError(s, s.redis.ConfigSet(s.Context(), "maxmemory", "1").Err())
		got := make(chan answer)
		go func() { got <- r.report(ending{opens: defined("a", "b")}) }()
		expect.Eventually(s, "Redis has refused the report", func() bool {
			info := expect.Result(s.redis.Info(s.Context(), "errorstats").Result()).Value(s)
			return strings.Contains(info, "errorstat_OOM")
		})
		expect.NoError(s, s.redis.ConfigSet(s.Context(), "maxmemory", "0").Err())
		expect.Equal(s, <-got, accepted)
		s.settles(id, "succeeded 0")
		expect.Equal(s, s.count(), 3)
	}},
	{"opens an invalid task", []need{opens}, func(s *scene) {
		s.spoils(ending{opens: []task.Definition{{Queue: "a b"}}}, "queue")
	}},
	{"opens too many tasks", []need{opens}, func(s *scene) {
		s.spoils(ending{opens: make([]task.Definition, task.MaxFollowing+1)}, "too many")
	}},
	{"opens a task whose blob is not stored", []need{opens}, func(s *scene) {
		lost := strings.Repeat("0", 64)
		s.spoils(ending{opens: []task.Definition{{Blobs: []string{lost + ":5"}}}}, "blob "+lost+": it is not stored")
	}},
	{"opens tasks although rounds may not", []need{opens}, func(s *scene) {
		expect.NoError(s, s.store.ChangeSetting(s.Context(), task.SettingRoundsOpen, "no"))
		s.spoils(ending{opens: defined("a")}, "rounds_open")
	}},
	{"opens tasks of a queue that its token may not use", []need{opens, tokens}, func(s *scene) {
		s.spoils(ending{opens: []task.Definition{{Queue: "secret"}}}, "queues")
	}},
}

// defined defines tasks with these inputs.
func defined(inputs ...string) []task.Definition {
	var all []task.Definition
	for _, input := range inputs {
		all = append(all, task.Definition{Input: input})
	}
	return all
}

// opening returns a success that opens tasks with these inputs, if the kind has that.
func (s *scene) opening(inputs ...string) ending {
	if s.kind.lacks[opens] != "" {
		return ending{}
	}
	return ending{opens: defined(inputs...)}
}

// beginIn lets a worker begin a task in a later round.
func (s *scene) beginIn(id int64, number int) (worker, round) {
	s.Helper()
	opened := s.task(id).Current().Entered[task.Open]
	s.set(s.store.Keys.Task(id), "round", number, fmt.Sprint(number, ":open"), opened, "reopens", number)
	return s.begin("w")
}

// spoils checks that nothing comes of a report: either the round fails, or the report is refused, and the worker can
// correct it.
func (s *scene) spoils(e ending, why string) {
	s.Helper()
	id := s.open(once)
	_, r := s.begin("w")
	switch before, got := s.world(), r.report(e); got {
	case acceptedAsFailed, accepted: // the latter if the handler got an error, and has returned it
		s.copied(r, e, got)
		expect.Contains(s, s.settles(id, "failed 0 fails 1").LastError(), why)
		expect.Equal(s, s.task(id).Current().Result, "")
	default:
		expect.Equal(s, got, invalid)
		expect.Equal(s, cmp.Diff(before, s.world()), "", "something was accepted")
		s.reports(r, ending{result: "1"}, accepted)
		s.settles(id, "succeeded 0")
	}
	expect.Equal(s, s.count(), 1, "tasks")
}

// dropFirstReplies drops the first reply to each of ten calls of scripts.
func dropFirstReplies(proxy *redistest.Proxy) {
	seen := map[string]bool{}
	proxy.DropReplies(10, func(command []string) bool {
		call := strings.Join(command, "\n")
		first := redistest.Scripts(command) && !seen[call]
		seen[call] = true
		return first
	})
}

// outage breaks the connections in the middle of a call that the proxy holds, and lets Redis come back.
func outage(s *scene, proxy *redistest.Proxy) {
	s.Helper()
	expect.Eventually(s, "a call waits for Redis", func() bool { return proxy.Held() > 0 })
	proxy.Cut()
	proxy.Resume()
}
