package admin

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/redisstate/callbacks"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// healthy returns the vitals of a namespace without problems.
func healthy() vitals {
	const now = 1_700_000_000
	alive := presence.WorkerStatus{WorkerInfo: presence.WorkerInfo{Name: "w1", State: "working", Slots: 4, Lease: 30, Offer: class.Offer{Programs: true}}, Seen: now}
	return vitals{
		redis: config.Redis{Host: "localhost"}, schema: "2", taskSize: 1000, memory: Memory{Used: 1e6, Limit: 100e6}, waited: 500,
		info: conn.Info{
			"redis_version": "7.0.15", "aof_enabled": "1", "aof_last_write_status": "ok", "rdb_last_bgsave_status": "ok",
			"maxmemory_policy": "noeviction", "role": "master",
		},
		snapshot: snapshot{
			fleet:  fleet{at: now, server: now - 1, workers: []presence.WorkerStatus{alive}, running: 4},
			counts: task.Counts{task.Open: 10, task.Running: 4}, settings: task.DefaultSettings(), room: task.Memory{Used: 1e6, Max: 100e6},
		},
	}
}

// For Valkey, the diagnosis names the version of Valkey, and not the version of Redis with which it is compatible.
func TestDiagnoseValkey(t *testing.T) {
	v := healthy()
	v.info["redis_version"], v.info["valkey_version"] = "7.2.4", "9.1.2"
	expect.True(t, slices.ContainsFunc(v.diagnose(), func(d Diagnosis) bool { return d.Text == "Redis is Valkey 9.1.2" }), v.diagnose())
}

// Each problem gives one diagnosis with its own text and fix.
func TestDiagnose(t *testing.T) {
	v := healthy()
	for _, d := range v.diagnose() {
		expect.Equal(t, d.Severity, SeverityOK, "a healthy namespace has the diagnoses")
	}
	v.fleet.running, v.limits = 1, []task.LimitUse{{Key: "db", Limited: true, Limit: task.Limit{AtMost: 2}, Running: 2, Waiting: 9}}
	for _, d := range v.diagnose() {
		expect.Equal(t, d.Severity, SeverityOK, "while tasks wait for a limit, there are the diagnoses")
	}
	idle := func(v *vitals) { v.counts = task.Counts{task.Archived: 5}; v.waited = 0 }
	for text, c := range map[string]struct {
		severity string
		change   func(*vitals)
	}{
		`the limit of key "db" is 0: 7 tasks wait`: {SeverityNotice, func(v *vitals) {
			v.limits = []task.LimitUse{{Key: "db", Limited: true, Waiting: 7}, {Key: "unused", Limited: true}}
		}},
		"Redis has version 6.2.1":                                        {SeverityProblem, func(v *vitals) { v.info["redis_version"] = "6.2.1" }},
		"this is the embedded Redis":                                     {SeverityNotice, func(v *vitals) { v.info = conn.Info{}; v.memory = Memory{} }},
		"Redis has no append-only file":                                  {SeverityProblem, func(v *vitals) { v.info["aof_enabled"] = "0" }},
		"could not write its append-only file (aof_last_write_status is": {SeverityProblem, func(v *vitals) { v.info["aof_last_write_status"] = "err" }},
		"could not write its last snapshot (rdb_last_bgsave_status is": {
			SeverityProblem, func(v *vitals) { v.info["rdb_last_bgsave_status"] = "err" },
		},
		"could not rewrite":                             {SeverityProblem, func(v *vitals) { v.info["aof_last_bgrewrite_status"] = "err" }},
		"Redis evicts keys":                             {SeverityProblem, func(v *vitals) { v.info["maxmemory_policy"] = "allkeys-lru" }},
		"hash-max-listpack-value is 64":                 {SeverityNotice, func(v *vitals) { v.untuned = []conn.Tuning{{Name: "hash-max-listpack-value", Found: "64"}} }},
		"Redis has no password and is reachable":        {SeverityProblem, func(v *vitals) { v.redis.Host = "10.0.0.1" }},
		"the callbacks of 3 tasks have failed for good": {SeverityProblem, func(v *vitals) { v.callbacks = 3 }},
		"the managers a and b handle tasks of the same groups, and each task gets the callback of only one of them: g": {
			SeverityNotice, func(v *vitals) {
				v.handlings = []callbacks.Handling{
					{ID: "1", Manager: "a", Groups: []string{"f", "g"}}, {ID: "2", Manager: "b", Groups: []string{"g"}},
				}
			},
		},
		"the primary s has no replica": {SeverityProblem, func(v *vitals) {
			v.redis.Sentinels, v.redis.Password, v.replication.Primary = []string{"10.0.0.1:1"}, "x", "s"
		}},
		"[redis] replicas=2, but online replicas: 1; calls": {SeverityProblem, func(v *vitals) {
			v.redis.Replicas.Wanted = 2
			v.replication.Replicas = []conn.Replica{{State: "online"}}
		}},
		"lags: r:2 (wait_bgsave, lag 0 s, 5 bytes behind)": {SeverityProblem, func(v *vitals) {
			v.replication.Replicas = []conn.Replica{{Addr: "r:2", State: "wait_bgsave", Behind: 5}}
		}},
		"lags: r:2 (online, lag 11 s, 0 bytes behind)": {SeverityProblem, func(v *vitals) {
			v.replication.Replicas = []conn.Replica{{Addr: "r:2", State: "online", Lag: 11}, {Addr: "r:3", State: "online", Lag: 10}}
		}},
		"this Redis is a replica":  {SeverityProblem, func(v *vitals) { v.info["role"] = "slave" }},
		"has layout version 0":     {SeverityNotice, func(v *vitals) { v.schema = "0" }},
		"clock is -50 s off":       {SeverityNotice, func(v *vitals) { v.clockOff = -50 }},
		"clock is -90 s off":       {SeverityProblem, func(v *vitals) { v.clockOff = -90 }},
		"1 of 3 sentinels work":    {SeverityProblem, func(v *vitals) { v.replication.Sentinels, v.replication.SentinelsUp = 3, 1 }},
		"lacks the rights to HSET": {SeverityProblem, func(v *vitals) { v.lacks = errors.New("the user lacks the rights to HSET") }},
		"no server has been seen for 62 s": {SeverityProblem, func(v *vitals) {
			v.fleet.server, v.periodics = v.at-62, []*task.PeriodicRecord{{Next: v.at - 61}}
			idle(v)
		}},
		"no server was ever seen":                                      {SeverityProblem, func(v *vitals) { v.fleet.server = 0 }},
		"no server has been seen for 60 s":                             {SeverityProblem, func(v *vitals) { v.fleet.server = v.at - 60 }},
		"no server has been seen for 61 s":                             {SeverityNotice, func(v *vitals) { v.fleet.server = v.at - 61; idle(v) }},
		"the server is 45 s late with due tasks":                       {SeverityProblem, func(v *vitals) { v.dueLag = 45 }},
		"no worker is alive: nothing runs":                             {SeverityProblem, func(v *vitals) { v.fleet.workers = nil }},
		"all workers drain, start or stop":                             {SeverityProblem, func(v *vitals) { v.fleet.workers[0].Drained = "me" }},
		"stopped sending heartbeats, but did not report their end: w2": {SeverityProblem, func(v *vitals) { v.fleet.workers = append(v.fleet.workers, silentSince(v, "w2", 60)) }},
		"program p is held, because it cannot be started; a task tries it at 22:13:50 UTC, in 30 s; the last failure was: why (workers: w1)": {SeverityProblem, func(v *vitals) {
			v.fleet.sources = []task.FailingSource{{Program: "p", Why: "why", Workers: []string{"w1"}, Since: v.at - 60, Last: v.at - 15, Tried: v.at - 15}}
		}},
		"program p is held, because it cannot be started; a task tries it now; the last failure was: why (workers: w1)": {SeverityProblem, func(v *vitals) {
			v.fleet.sources = []task.FailingSource{{Program: "p", Why: "why", Workers: []string{"w1"}, Since: v.at - 1, Last: v.at - 1}}
		}},
		"worker w1: 1 of 2 slots pause: no space; they wait": {SeverityProblem, func(v *vitals) {
			v.fleet.workers[0].Shortage = "1 of 2 slots pause: no space; they wait; free the disk of w1, or tdf drain w1"
		}},
		"open tasks wait for another worker: no live worker serves the queue crawl": {SeverityProblem, func(v *vitals) {
			v.requirements = []string{class.Plain, "queue=crawl"}
		}},
		"open tasks wait for another worker: no live worker handles resize": {SeverityProblem, func(v *vitals) {
			v.requirements = []string{"handler=resize"}
		}},
		"tasks wait for campaigns that are not closed: a, c": {SeverityNotice, func(v *vitals) {
			v.waiting = 9
			v.awaited = []dependencies.AwaitedGroup{{Group: "a"}, {Group: "b", Mark: task.GroupClosed}, {Group: "c"}}
		}},
		"tasks wait for each other, so they never run: campaign b waits for campaign c waits for campaign b": {SeverityProblem, func(v *vitals) {
			v.waiting, v.waits = 2, waitersOf(map[string]string{"a": "x b", "b": "c", "c": "y b"})
		}},
		"tasks wait for each other, so they never run: campaign c waits for task 2 waits for campaign c": {SeverityProblem, func(v *vitals) {
			v.waiting, v.waits = 2, waitersOf(map[string]string{"2": "c", "c": "2"})
		}},
		"waited for 500 s although 3 slots are":    {SeverityProblem, func(v *vitals) { v.fleet.running = 1 }},
		"waited for 500 s although 1 slot is free": {SeverityProblem, func(v *vitals) { v.fleet.running = 3 }},
		"waited for 501 s although 2 slots are": {SeverityProblem, func(v *vitals) {
			v.fleet.running, v.waited, v.moved = 1, 501, v.at-31
			v.fleet.workers[0].Runs = []int64{1, 2}
		}},
		"old, a worker of the original TDF, holds 1 tasks whose programs it cannot fetch; the first is task 7": {SeverityProblem, func(v *vitals) {
			v.fleet.workers, v.original = nil, heldByOriginal("redis:x", "rsync:/p/run.sh")
		}},
		"task 7 has run for 900 s on w1; 95 of 100":                          {SeverityNotice, func(v *vitals) { v.long = []longRun{aLongRun(7)} }},
		"5.0 MB of maxmemory are left":                                       {SeverityProblem, func(v *vitals) { v.memory.Used = 95e6 }},
		"uses 81 % of its maxmemory: above high_water (0.8), new tasks wait": {SeverityProblem, func(v *vitals) { v.room.Used = 81e6 }},
		"uses 96 % of its maxmemory: new tasks and claims wait":              {SeverityProblem, func(v *vitals) { v.room.Used = 96e6 }},
		"max_tasks is 14: new tasks are refused":                             {SeverityProblem, func(v *vitals) { v.settings.MaxTasks = 14 }},
		"holds 14 tasks, and its setting max_tasks is 15":                    {SeverityNotice, func(v *vitals) { v.settings.MaxTasks = 15 }},
		"an invalid setting, and its default holds: x; y":                    {SeverityProblem, func(v *vitals) { v.invalid = errors.New("x\ny") }},
		"199.0 MB of the machine's":                                          {SeverityNotice, func(v *vitals) { v.memory = Memory{Used: 1e6, System: 200e6} }},
		"0.0 MB of maxmemory are left; an open t":                            {SeverityProblem, func(v *vitals) { v.memory.Used = 101e6 }},
	} {
		v := healthy()
		c.change(&v)
		var found []Diagnosis
		for _, d := range v.diagnose() {
			if d.Severity != SeverityOK {
				found = append(found, d)
			}
		}
		expect.MustLen(t, found, 1)
		expect.Contains(t, found[0].Text, text)
		expect.MustEqual(t, found[0].Severity, c.severity)
		expect.MustTrue(t, found[0].Fix.Text != "", text, "got", found)
		expect.NotEqual(t, found[0].Code, "")
	}
}

// The number of waiting tasks is no problem. A long cycle gives a short text.
func TestDiagnoseWaitingTasks(t *testing.T) {
	v := healthy()
	v.waiting, v.limits = 3, []task.LimitUse{{Key: "db", Limited: true, Limit: task.Limit{AtMost: 2}, Running: 2, Waiting: 9}}
	d := diagnoses{}
	v.waitingTasks(&d)
	expect.MustLen(t, d.all, 1)
	expect.MustEqual(t, d.all[0].Severity, SeverityOK)
	expect.Equal(t, d.all[0].Text, "open tasks that wait for other tasks: 3, for limits: 9")
	long := map[string]string{}
	for i := range 100 {
		long[fmt.Sprint("a-long-name-", i)] = fmt.Sprint("a-long-name-", (i+1)%100)
	}
	v.waits = waitersOf(long)
	d = diagnoses{}
	v.waitingTasks(&d)
	expect.MustLen(t, d.all, 2)
	expect.Compare(t, len(d.all[1].Text), "<=", mostText+3)
}

// waitersOf returns tasks, which have numbers as names, and groups, with those that they wait for.
func waitersOf(names map[string]string) map[waiter][]waiter {
	of := func(name string) waiter {
		if id, err := strconv.ParseInt(name, 10, 64); err == nil {
			return waiter{id: id}
		}
		return waiter{group: name}
	}
	waits := map[waiter][]waiter{}
	for name, others := range names {
		for other := range strings.FieldsSeq(others) {
			waits[of(name)] = append(waits[of(name)], of(other))
		}
	}
	return waits
}

// A cycle is found if there is one.
func TestCycleOf(t *testing.T) {
	for want, waits := range map[string]map[string]string{
		"[]":                                 {"a": "b c", "b": "d", "c": "d", "1": "2 a"},
		"[campaign a]":                       {"a": "a"},
		"[campaign b campaign c campaign d]": {"a": "b x", "b": "c", "c": "x d", "d": "b"},
		"[task 3 task 5]":                    {"4": "5", "5": "9 3", "3": "5"},
		"[campaign a task 7]":                {"7": "a", "a": "7"},
	} {
		expect.Equal(t, fmt.Sprint(cycleOf(waitersOf(waits))), want, waits)
	}
	deep := map[string]string{}
	for i := range 20 { // many paths lead to the same groups
		for j := range 20 {
			for k := range 20 {
				deep[fmt.Sprint(i, "-", j)] += fmt.Sprint(" ", i+1, "-", k)
			}
		}
	}
	got := cycleOf(waitersOf(deep))
	expect.True(t, got == nil, "without a cycle", got)
}

// A busy campaign raises no alarm, although slots are free between two tasks and on workers that drain.
func TestDiagnoseABusyCampaign(t *testing.T) {
	for name, change := range map[string]func(*vitals){
		"a task was claimed":   func(v *vitals) { v.moved = v.at - 29 },
		"the workers are full": func(v *vitals) { v.fleet.workers[0].Runs = []int64{1, 2, 3, 4} },
		"workers with free slots drain": func(v *vitals) {
			v.fleet.workers[0].Runs = []int64{1, 2, 3, 4}
			v.fleet.workers = append(v.fleet.workers, presence.WorkerStatus{WorkerInfo: presence.WorkerInfo{State: "draining", Slots: 4, Lease: 30}, Seen: v.at})
		},
	} {
		v := healthy()
		v.fleet.running = 2
		change(&v)
		for _, d := range v.diagnose() {
			expect.Equal(t, d.Severity, SeverityOK, name)
		}
	}
}

// vitalsOfMoves finds a task that was claimed or executed lately, even if the task is open again.
func TestVitalsOfMoves(t *testing.T) {
	for name, c := range map[string]struct {
		task  func(now task.Time) task.Hash
		moved bool
	}{
		"runs since": {func(now task.Time) task.Hash { return task.Hash{"state": "running", "0:running": now.Add(-5).String()} }, true},
		"has run for long": {func(now task.Time) task.Hash {
			return task.Hash{"state": "running", "0:running": now.Add(-500).String()}
		}, false},
		"has ended":  {func(now task.Time) task.Hash { return task.Hash{"state": "failed", "0:failed": now.Add(-5).String()} }, true},
		"was opened": {func(now task.Time) task.Hash { return task.Hash{"state": "open", "0:open": now.String()} }, false},
		"was forgiven": {func(now task.Time) task.Hash {
			return task.Hash{
				"state": "open", "round": "1", "fails": "1", "max_fails": "9", "0:worker": "w", "0:running": "1000",
				"0:failure": now.Add(-5).String(), "1:open": now.Add(-5).String(),
			}
		}, true},
	} {
		a, _ := onEmbedded(t)
		s := a.redis()
		now := expect.Result(s.Now(t.Context())).Value(t)
		h := c.task(now)
		h["program"], h["source"] = "p", "rsync:/p/run.sh"
		testspace.PutTasks(t, s, map[int64]task.Hash{1: h})
		v := vitals{snapshot: snapshot{fleet: fleet{at: now}}}
		expect.NoError(t, vitalsOfMoves(t.Context(), s, &v), name)
		expect.Equal(t, now.Sub(v.moved) <= idle, c.moved, name)
	}
}

func silentSince(v *vitals, name string, ago task.Seconds) presence.WorkerStatus {
	return presence.WorkerStatus{WorkerInfo: presence.WorkerInfo{Name: name, State: "working", Lease: 30}, Seen: v.at.Add(-ago)}
}

func aLongRun(id int64) longRun {
	return longRun{&task.Task{ID: id, Properties: task.Defaults("p", "", ""), Rounds: task.Rounds{0: {Worker: "w1"}}}, 900, 3}
}

func TestDiagnoseNamesTheFirstOfMany(t *testing.T) {
	v := healthy()
	for i := range 30 {
		v.fleet.workers = append(v.fleet.workers, silentSince(&v, fmt.Sprint("silent-", i), 60), silentSince(&v, "old", 90_000))
		v.long = append(v.long, aLongRun(int64(i)))
	}
	texts := ""
	for _, d := range v.diagnose() {
		texts += d.Text + "\n"
	}
	for _, want := range []string{"silent-4 and 25 more", "10 more tasks have run for far longer"} {
		expect.Contains(t, texts, want, "no diagnosis")
	}
	expect.True(t, !strings.Contains(texts, "old"), "a worker that has been silent for a day has a diagnosis")
}

// A run counts as long if it took far longer than most runs of its program. If too few runs of the program are known,
// no run counts as long.
func TestLongRuns(t *testing.T) {
	const now = 10_000
	ran := func(program string, seconds task.Seconds) *task.Task {
		return &task.Task{Properties: task.Defaults(program, "", ""), Rounds: task.Rounds{0: {Seconds: seconds}}}
	}
	runs := func(id int64, program string, since task.Time) *task.Task {
		return &task.Task{ID: id, Properties: task.Defaults(program, "", ""), Rounds: task.Rounds{0: {Entered: map[task.State]task.Time{task.Running: now - since}}}}
	}
	var ended []*task.Task
	for i := range 100 {
		ended = append(ended, ran("p", task.Seconds(1+i%10)), ran("quick", 0.01))
	}
	ended[0] = ran("p", 5000) // a single long run does not change the usual run time
	for range 9 {
		ended = append(ended, ran("new", 1))
	}
	long := longRuns(now, []*task.Task{
		runs(1, "p", 101), runs(2, "p", 99), runs(3, "quick", 59), runs(4, "quick", 61), runs(5, "new", 9000), runs(6, "unknown", 9000),
	}, ended)
	var ids []int64
	for _, l := range long {
		ids = append(ids, l.task.ID)
	}
	expect.Equal(t, fmt.Sprint(ids), "[1 4]")
	expect.MustEqual(t, long[0].usual, 10)
	expect.Equal(t, long[0].runs, 101)
}

// heldByOriginal returns running tasks with these sources. A worker of the original TDF holds them.
func heldByOriginal(sources ...string) (tasks []*task.Task) {
	for i, source := range sources {
		x := &task.Task{ID: int64(7 + i), State: task.Running, Rounds: task.Rounds{0: {Worker: "old"}}}
		x.Source = source
		tasks = append(tasks, x)
	}
	return tasks
}
