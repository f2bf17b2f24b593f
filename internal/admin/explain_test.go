package admin

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
	"github.com/tdf-framework/tdf/redisstate/limits"
	"github.com/tdf-framework/tdf/redisstate/opensets"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

const testNow = task.Time(1_800_000_000)

// waiting returns a situation with an open task that no check blocks. Then it calls change, which may change the
// situation.
func waiting(change func(*situation)) *situation {
	d := task.Defaults("p", "rsync:/p/run.sh", "x")
	c := &situation{
		snapshot: snapshot{
			fleet:    fleet{at: testNow, server: testNow - 1, workers: []presence.WorkerStatus{working("w1"), working("w2")}},
			settings: task.DefaultSettings(),
		},
		task:  &task.Task{Properties: d, ID: 7, State: task.Open, Rounds: task.Rounds{0: {}}},
		place: opensets.Position{Listed: true, From: testNow - 5}, source: passed("source", ""),
	}
	change(c)
	return c
}

func working(name string) presence.WorkerStatus {
	return presence.WorkerStatus{
		WorkerInfo: presence.WorkerInfo{Name: name, Host: "h", State: "working", Slots: 2, Lease: 30, Offer: class.Offer{Programs: true}}, Seen: testNow - 3,
	}
}

// busyWith returns a situation with a task that worker w1 runs. Then it calls change, which may change the situation.
func busyWith(change func(*situation)) *situation {
	return waiting(func(c *situation) {
		c.task.State, c.task.LeaseUntil = task.Running, testNow+20
		c.task.Rounds[0] = &task.Round{Worker: "w1", Claim: "c", Entered: map[task.State]task.Time{task.Running: testNow - 60}}
		c.took = []task.Seconds{5, 10, 15}
		change(c)
	})
}

// holding returns the names and texts of those checks that block the task.
func holding(checks []Check) string {
	var parts []string
	for _, g := range checks {
		if g.State == Blocked {
			if g.Code == "" {
				g.Text += " (the check has no code)"
			}
			parts = append(parts, g.Name+": "+g.Text)
		}
	}
	return strings.Join(parts, " | ")
}

func TestChecksOfAnOpenTask(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*situation)
		want   string // the blocking check; "" if no check blocks
	}{
		"nothing":      {func(*situation) {}, ""},
		"invalid":      {func(c *situation) { c.wrong = &task.PropertyError{Property: "input", Reason: "bad"} }, "definition: the definition is invalid, so the task will fail: input: bad"},
		"no server":    {func(c *situation) { c.server = 0 }, "server: no server was ever seen in this namespace: executed tasks do not finish"},
		"server gone":  {func(c *situation) { c.server = testNow - 300 }, "server: no server has been seen for 5 min: executed tasks do not finish"},
		"full":         {func(c *situation) { c.room = task.Memory{Used: 96, Max: 100} }, "memory: Redis uses 96 % of its maxmemory: new tasks and claims wait"},
		"start after":  {func(c *situation) { c.task.StartAfter = testNow + 3600 }, "start: not before 2027-01-15 09:00:00 UTC, in 60 min (start_after)"},
		"never starts": {func(c *situation) { c.task.StartAfter = task.Never }, "start: the task never starts (start_after is inf)"},
		"back-off":     {func(c *situation) { c.place.From = testNow + 4 }, "start: not before 2027-01-15 08:00:04 UTC, in 4.0 s: the task waits between two rounds, because of its back-off or because a handler put it off"},
		"too late":     {func(c *situation) { c.task.EndBefore = testNow - 1 }, "end: end_before was 2027-01-15 07:59:59 UTC, 1.0 s ago: the task will expire"},
		"in time":      {func(c *situation) { c.task.EndBefore = testNow + 1 }, ""},
		"unlisted":     {func(c *situation) { c.place.Listed = false }, "queue: the task is not in the list of open tasks"},
		"first ones":   {func(c *situation) { c.place.Ahead = 3 }, ""},
		"long queue":   {func(c *situation) { c.place.Ahead = 4 }, "queue: 4 tasks are ahead in the queue; the workers that may claim the task have 4 slots"},
		"queue, all busy": {func(c *situation) {
			c.place.Ahead = 4
			c.workers[0].Runs, c.workers[1].Runs = []int64{1, 2}, []int64{3, 4}
		}, "queue: 4 tasks are ahead in the queue; the workers that may claim the task have 4 slots"},
		"first, all busy": {func(c *situation) { c.workers[0].Runs, c.workers[1].Runs = []int64{1, 2}, []int64{3, 4} }, "worker: none of 2 workers can run the task; has no free slot: w1, w2"},
		"not its time, all busy": {func(c *situation) {
			c.task.StartAfter, c.place.Ahead = testNow+3600, 9
			c.workers[0].Runs, c.workers[1].Drained = []int64{1, 2}, "me"
		}, "start: not before 2027-01-15 09:00:00 UTC, in 60 min (start_after)"},
		"not its time, all drained": {func(c *situation) {
			c.task.StartAfter, c.place.Ahead = testNow+3600, 9
			c.workers[0].Drained, c.workers[1].Drained = "me", "me"
		}, "start: not before 2027-01-15 09:00:00 UTC, in 60 min (start_after) | worker: none of 2 workers can run the task; ordered to drain: w1, w2"},
		"no worker": {func(c *situation) { c.workers = nil }, "worker: no worker is alive: nothing runs"},
		"original workers": {func(c *situation) {
			c.workers, c.original = nil, true
		}, "worker: no worker that sends heartbeats is alive: tasks run only if workers of the original TDF do, which send none"},
		"silent":      {func(c *situation) { c.workers[0].Seen, c.workers[1].State = testNow-31, "gone" }, "worker: no worker is alive: nothing runs"},
		"one is full": {func(c *situation) { c.workers[0].Runs = []int64{1, 2} }, ""},
		"each has its reason": {func(c *situation) {
			c.workers = append(c.workers[:1], working("w3"), working("w4"), working("w5"))
			c.workers[0].Runs = []int64{1, 2, 3}
			c.workers[1].Drained = "operator"
			c.workers[2].State = "starting"
			c.task.NotOn = []task.NotOn{{Worker: "w5", Until: testNow + 1}, {Worker: "w1", Until: testNow}}
		}, "worker: none of 4 workers can run the task; must not run the task (not_on): w5; ordered to drain: w3; starts or stops: w4; has no free slot: w1"},
		"queue": {func(c *situation) { c.task.Queue = "crawl" }, "worker: no live worker serves the queue crawl"},
		"served queue": {func(c *situation) {
			c.task.Queue = "crawl"
			c.workers[1].Offer.Queues = []class.QueueShare{{Queue: "mail"}, {Queue: "crawl", Weight: 3}}
		}, ""},
		"only other queues": {func(c *situation) {
			c.workers = c.workers[:1]
			c.workers[0].Offer.Queues = []class.QueueShare{{Queue: "mail"}}
		}, "worker: no live worker serves the queue default"},
		"tags": {func(c *situation) {
			c.task.Tags = []string{"ssd", "gpu"}
			c.workers[0].Offer.Tags = []string{"gpu"}
		}, "worker: no live worker offers the tags gpu, ssd"},
		"handler": {func(c *situation) { c.task.Source, c.task.Tags = "", []string{"gpu"} }, "worker: no live worker handles p; no live worker offers the tag gpu"},
		"only handlers": {func(c *situation) {
			c.workers[0].Offer, c.workers[1].Offer = class.Offer{Handlers: []string{"p"}}, class.Offer{Handlers: []string{"q"}}
		}, "worker: no live worker runs tasks with a source"},
		"not all on one": {func(c *situation) {
			c.task.Queue, c.task.Tags = "crawl", []string{"gpu"}
			c.workers[0].Offer.Queues, c.workers[1].Offer.Tags = []class.QueueShare{{Queue: "crawl"}}, []string{"gpu"}
		}, "worker: no live worker meets all of these needs: queue=crawl;tags=gpu"},
		"silent server of the queue": {func(c *situation) {
			c.task.Queue = "crawl"
			c.workers[0].Offer.Queues, c.workers[0].Seen = []class.QueueShare{{Queue: "crawl"}}, testNow-31
		}, "worker: no live worker serves the queue crawl"},
		"busy server of the queue": {func(c *situation) {
			c.task.Queue = "crawl"
			c.workers[0].Offer.Queues, c.workers[0].Runs = []class.QueueShare{{Queue: "crawl"}}, []int64{1, 2}
		}, "worker: none of 2 workers can run the task; does not offer the task's queue, tags, handler or resources: w2; has no free slot: w1"},
		"slots of other workers": {func(c *situation) {
			c.task.Queue, c.place.Ahead = "crawl", 2
			c.workers[0].Offer.Queues = []class.QueueShare{{Queue: "crawl"}}
		}, "queue: 2 tasks are ahead in the queue; the workers that may claim the task have 2 slots"},
		"no worker with resources": {func(c *situation) { c.task.Resources = "cpus=4" }, "worker: no live worker offers resources, and the task asks for cpus=4"},
		"closest resources": {func(c *situation) {
			c.task.Resources = "cpus=16 gpus=1 memory=1G or cpus=32"
			c.workers[0].Offer.Resources = class.Amounts{{Name: "cpus", Units: 80_000}, {Name: "memory", Units: 1 << 29}}
			c.workers[1].Offer.Resources = class.Amounts{{Name: "cpus", Units: 200_000}}
		}, "worker: no live worker offers cpus=16 gpus=1 memory=1G or cpus=32; the closest offer, cpus=20, lacks cpus=12"},
		"resources of busy workers": {func(c *situation) {
			c.task.Resources = "cpus=4 memory=1G"
			for i := range c.workers {
				c.workers[i].Offer.Resources = class.Amounts{{Name: "cpus", Units: 80_000}, {Name: "memory", Units: 4 << 30}}
			}
			c.workers[0].Used = class.Amounts{{Name: "cpus", Units: 80_000}}
			c.workers[1].Used = class.Amounts{{Name: "cpus", Units: 55_000}, {Name: "memory", Units: 2 << 30}}
		}, "worker: none of 2 workers can run the task; has too little free while its tasks run: w1, w2; w2 comes closest, and lacks cpus=1.5"},
		"rounded memory": {func(c *situation) {
			c.task.Resources = "memory=15500M"
			for i := range c.workers {
				c.workers[i].Offer.Resources = class.Amounts{{Name: "cpus", Units: 80_000}, {Name: "memory", Units: 15700 << 20}}
			}
		}, "worker: no live worker offers cpus=1 memory=16G; the closest offer, cpus=8 memory=15700M, lacks memory=684M (requests for memory " +
			"are rounded up)"},
		"workers that are kept": {func(c *situation) {
			c.task.Resources = "cpus=2"
			for i := range c.workers {
				c.workers[i].Offer.Resources = class.Amounts{{Name: "cpus", Units: 40_000}}
				c.workers[i].Used = class.Amounts{{Name: "cpus", Units: 30_000}}
			}
			c.kept = []redisstate.Keeping{{Worker: "w1", Task: 3, Since: testNow - 90}, {Worker: "w3", Task: 4, Since: testNow - 9}}
		}, "worker: none of 2 workers can run the task; has too little free while its tasks run: w1, w2; w1 comes closest, and lacks cpus=1; " +
			"w1 has been kept for task 3 since 2027-01-15 07:58:30 UTC, 90 s ago: it keeps back what the task takes, " +
			"until its rounds that run now have ended, or for an hour"},
		"resources of one worker": {func(c *situation) {
			c.task.Resources = "cpus=8"
			c.workers[0].Offer.Resources = class.Amounts{{Name: "cpus", Units: 80_000}}
		}, ""},
		"limit with room": {func(c *situation) { c.limitedTo(task.Limit{AtMost: 4}) }, ""},
		"limit without room": {func(c *situation) {
			c.limitedTo(task.Limit{AtMost: 4})
			c.limit.Running = 4
		}, `limit: the limit of key "db" has no room: 4 of 4 tasks run`},
		"waits for a limit": {func(c *situation) {
			c.limitedTo(task.Limit{AtMost: 4})
			c.task.PlacedIn, c.place.Ahead, c.limit.Running, c.limit.Waiting = "limit=db\n", 9, 4, 7
		}, `limit: the task waits for the limit of key "db": 4 of 4 tasks run, 7 tasks wait`},
		"waits for a rate": {func(c *situation) {
			c.limitedTo(task.Limit{Starts: 10, Per: task.Seconds(1.5).Std()})
			c.task.PlacedIn, c.limit.Waiting = "limit=db\n", 1
		}, `limit: the task waits for the limit of key "db": 10 of 10 starts in the last 1.5 s, 1 task waits`},
		"held program": {func(c *situation) {
			c.sources = []task.FailingSource{{Name: c.task.SourceName(), Program: "p", Why: "why", Workers: []string{"w1"}, Since: testNow - 1, Last: testNow - 1}}
			c.place.Ahead = 9
		}, "program: program p is held, because it cannot be started; a task tries it now; the last failure was: why (workers: w1)"},
		"the limit was removed": {func(c *situation) {
			c.task.LimitKey, c.task.PlacedIn = "db", "limit=db\n"
		}, `limit: the limit of key "db" was removed, and the server returns the waiting tasks`},
		"the limit was removed in a pause": {func(c *situation) {
			c.task.LimitKey, c.task.PlacedIn = "db", "limit=db\n"
			c.pausedBy(task.Everything)
		}, "pause: all tasks: paused by me, 9.0 s ago | " +
			`limit: the limit of key "db" was removed, and after the pause of the namespace, the server will return the waiting tasks`},
		"higher priority":            {func(c *situation) { c.place.Higher = 3 }, ""},
		"all have a higher priority": {func(c *situation) { c.place.Higher = 4 }, "queue: 4 tasks are ahead in the queue, with a higher priority; the workers that may claim the task have 4 slots"},
		"some have a higher priority": {func(c *situation) {
			c.place.Ahead, c.place.Higher = 2, 5
		}, "queue: 7 tasks are ahead in the queue, 5 of them with a higher priority; the workers that may claim the task have 4 slots"},
		"paused queue": {func(c *situation) {
			c.task.Group = "night"
			c.pausedBy(task.Pausable{Queue: "default"}, task.Pausable{Queue: "other"}, task.Pausable{Group: "g"})
		}, "pause: queue default: paused by me, 9.0 s ago"},
		"paused campaign and namespace": {func(c *situation) {
			c.task.Group = "night"
			c.pausedBy(task.Pausable{Group: "night"}, task.Everything)
		}, "pause: campaign night: paused by me, 9.0 s ago | pause: all tasks: paused by me, 9.0 s ago"},
		"waits for the server": {func(c *situation) { c.waitsFor(5) }, "dependencies: all dependencies have ended, and the server lets the task run soon"},
		"not linked": {func(c *situation) {
			c.waitsFor(5)
			c.task.Rounds[0].Linked = 2
		}, "dependencies: the server has looked up 2 of 5 dependencies"},
		"not met": {func(c *situation) {
			c.waitsFor(5)
			c.task.Rounds[0].Unmet = "task 3: failed"
		}, "dependencies: the task will fail: task 3: failed"},
		"waits for tasks and groups": {func(c *situation) {
			c.waitsFor(9, dependencies.Dependency{ID: 3, State: task.Running}, dependencies.Dependency{Group: "a"}, dependencies.Dependency{Group: "b", Mark: task.GroupClosed})
		}, "dependencies: 9 of 9 have not ended: task 3 (running), campaign a (not closed yet), campaign b (closed, not complete), …"},
		"source": {func(c *situation) { c.source = blockedBy("source", FactSourceMissing, "gone", Fix{}) }, "source: gone"},
	} {
		expect.Equal(t, holding(waiting(c.change).open()), c.want, name)
	}
	fix := waiting(func(c *situation) { c.place.Ahead = 4 }).queue().Fix
	expect.True(t, slices.Contains(fix.Steps, StepRaisePriority), fix.Text)
}

func TestChecksOfARunningTask(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*situation)
		want   string
	}{
		"well":                  {func(*situation) {}, ""},
		"silent worker":         {func(c *situation) { c.workers[0].Seen = testNow - 40 }, "worker: w1 on h has been silent for 40 s"},
		"lease over":            {func(c *situation) { c.task.LeaseUntil = testNow - 1 }, "lease: the lease ran out: the server declares the round lost"},
		"grace period":          {func(c *situation) { c.task.LeaseUntil, c.grace.Running = testNow-1, testNow+25 }, "lease: the lease ran out, but Redis was away: no task is lost before 2027-01-15 08:00:25 UTC, in 25 s"},
		"late, in grace period": {func(c *situation) { c.task.Deadline, c.grace.Running = testNow-1, testNow+25 }, "deadline: the deadline has passed, but Redis was away: no round times out before 2027-01-15 08:00:25 UTC, in 25 s"},
		"late":                  {func(c *situation) { c.task.Deadline = testNow - 1 }, ""},
		"no server":             {func(c *situation) { c.server = 0 }, "server: no server was ever seen in this namespace: executed tasks do not finish"},
		"unknown worker":        {func(c *situation) { c.workers, c.task.Rounds.At(0).Claim = nil, "" }, ""},
		"no heartbeats":         {func(c *situation) { c.workers, c.task.Source = nil, "" }, ""},
	} {
		expect.Equal(t, holding(busyWith(c.change).running()), c.want, name)
	}
	unknown := busyWith(func(c *situation) { c.workers = nil })
	expect.Equal(t, holding(unknown.running()), "worker: w1 has not been seen in this namespace lately", "unknown")
	fetching := busyWith(func(c *situation) { c.took = nil })
	got := fetching.run().Text
	expect.Equal(t, got, "claimed 60 s ago; the worker has reported no output yet; the program must end", "while the program is fetched")
	c := busyWith(func(c *situation) {
		c.task.Rounds.At(0).LastOutput, c.task.Rounds.At(0).Progress = testNow-30, task.Progress{Fraction: 0.4}
	})
	const want = "claimed 60 s ago; the program last printed something 30 s ago; its progress is 40 %; successful runs of this program took 10 s (median) and at most 15 s (3 runs)"
	expect.Equal(t, c.run().Text, want)
}

func TestChecksOfTasksThatRan(t *testing.T) {
	ended := func(state task.State, outcome string, r task.Round) *situation {
		return waiting(func(c *situation) { c.task.State, c.task.Outcome, c.task.Rounds[0] = state, outcome, &r })
	}
	at := map[task.State]task.Time{task.Executed: testNow - 2, task.Failed: testNow - 1, task.Expired: testNow - 1}
	incomplete := ended(task.Executed, "", task.Round{Worker: "w"})
	got := holding(incomplete.executed())
	expect.True(t, strings.HasPrefix(got, "result: the result is incomplete"), "incomplete", got)
	unsettled := ended(task.Executed, "", task.Round{Worker: "w", Exit: "0", Committed: true, Entered: at})
	unsettled.server = 0
	expect.Equal(t, holding(unsettled.executed()), "server: no server was ever seen in this namespace: executed tasks do not finish", "executed")
	failed := ended(task.Failed, "failed", task.Round{Worker: "w", Exit: "3", FailedAt: testNow - 1, Error: "no luck", Entered: at}).finished()
	expect.MustEqual(t, failed[0].Text, "failed 1.0 s ago: exit status 3: no luck")
	expect.Equal(t, failed[0].Fix.Text, "retry the task")
	expect.Equal(t, holding(failed), "")
	for want, c := range map[string]struct {
		state   task.State
		outcome string
		round   task.Round
	}{
		"timed out 1.0 s ago: it ran for longer than 2 s": {task.TimedOut, "timed_out", task.Round{Worker: "w", TimedOutAt: testNow - 1, Error: "timed out: it ran for longer than 2 s", Entered: map[task.State]task.Time{task.TimedOut: testNow - 1}}},
		"timed out 1.0 s ago: timed outside":              {task.TimedOut, "timed_out", task.Round{Worker: "w", TimedOutAt: testNow - 1, Error: "timed outside", Entered: map[task.State]task.Time{task.TimedOut: testNow - 1}}},
		"expired 1.0 s ago: before it ran":                {task.Expired, "expired", task.Round{Entered: map[task.State]task.Time{task.Expired: testNow - 1}}},
		"failed 1.0 s ago: could not be run: no run.sh":   {task.Failed, "failed", task.Round{Worker: "w", Claim: "c", FailedAt: testNow - 1, Error: "no run.sh", Entered: at}},
	} {
		expect.Equal(t, ended(c.state, c.outcome, c.round).finished()[0].Text, want)
	}
	late := ended(task.Expired, "expired", task.Round{Entered: at})
	late.task.EndBefore = testNow - 1
	expect.Equal(t, late.finished()[0].Fix.Text, "retry the task with a later end_before", "after end_before: the fix")
	cancelled := ended(task.Archived, task.Cancelled, task.Round{Entered: at}).finished()
	expect.MustEqual(t, cancelled[0].Text, "cancelled 1.0 s ago")
	expect.Equal(t, cancelled[1].State, Passed)
}

// The check of a source blocks a task only if the web server answers "not found". The text of the check contains no password.
func TestSourceCheck(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		expect.Equal(t, r.Method, http.MethodHead, "asked by")
		switch r.URL.Path {
		case "/here.zip":
		case "/broken.zip":
			w.WriteHeader(http.StatusBadGateway)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	const closed = "http://127.0.0.1:1" // a port on which no server listens
	withPassword := func(url string) string { return strings.Replace(url, "http://", "http://user:secret@", 1) }
	for source, want := range map[string]CheckState{
		withPassword(server.URL) + "/here.zip": Passed, withPassword(server.URL) + "/gone.zip?key=secret": Blocked,
		withPassword(server.URL) + "/broken.zip": Ahead, withPassword(closed) + "/x.zip": Ahead,
	} {
		src := expect.Result(task.ParseSource(source)).Value(t)
		got := httpCheck(t.Context(), src)
		expect.Equal(t, got.State, want, source)
		expect.NotContains(t, got.Text+got.Fix.Text, "secret", source)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	src, _ := task.ParseSource(server.URL + "/here.zip")
	expect.Equal(t, httpCheck(ctx, src).State, Ahead, "with an ended context")
}

// Explain reads the text of the last error. It reads only the lengths of the other texts that rounds printed.
func TestExplainReadsWhatItNeeds(t *testing.T) {
	a, _ := onEmbedded(t)
	now := expect.Result(a.redis().Now(t.Context())).Value(t)
	archive(t, a, 4, func(i int, h task.Hash) {
		h["0:executed"] = now.String()
		switch i {
		case 0:
			setFailed(h, "3", "first\nno luck\n")
		case 1: // executed by a worker of the original TDF
			h["state"], h["outcome"], h["0:claim"], h["0:output"], h["0:error"] = "executed", "", "", "", ""
		case 2: // executed by a worker of the original TDF that is still writing the result
			h["state"], h["outcome"], h["0:claim"], h["0:output"] = "executed", "", "", ""
		case 3:
			h["state"], h["outcome"], h["meta"] = "open", "", strings.Repeat("x", 5000)
		}
	})
	for id, want := range map[int64]string{1: "exit status 3: no luck", 2: "ended ", 3: "the result is incomplete", 4: "the definition is invalid"} {
		e, err := a.Explain(t.Context(), id)
		said := ""
		for _, g := range e.Checks {
			said += g.Text + "\n"
		}
		expect.NoError(t, err, "task", id, said)
		expect.Contains(t, said, want, "task", id)
	}
}

// A task that waits for an open campaign has the fix to close the campaign.
func TestFixOfAnOpenCampaign(t *testing.T) {
	c := waiting(func(c *situation) {
		c.waitsFor(2, dependencies.Dependency{Group: "a"}, dependencies.Dependency{ID: 3, State: task.Open})
	})
	expect.Equal(t, c.dependencies().Fix.Text, "wait, or close the campaign when it has all of its tasks", "the fix")
}

// pausedBy adds pauses.
func (c *situation) pausedBy(all ...task.Pausable) {
	for _, p := range all {
		c.paused = append(c.paused, limits.Pausing{Pausable: p, By: "me", Since: testNow - 9})
	}
}

// waitsFor makes the task wait for a number of dependencies. The arguments pending are the first of them.
func (c *situation) waitsFor(links int, pending ...dependencies.Dependency) {
	c.task.PlacedIn, c.task.Links, c.pending = task.WaitingPlace, links, pending
	c.task.Rounds[0].Linked, c.task.Rounds[0].Waits = links, links
}

// limitedTo gives the task a limit key with a limit.
func (c *situation) limitedTo(l task.Limit) {
	c.task.LimitKey = "db"
	c.limit = task.LimitUse{Key: "db", Limit: l, Limited: true}
}
