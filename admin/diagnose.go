package admin

import (
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/stdtime"
	"github.com/tdf-framework/tdf/redisstate"
)

// diagnose returns the diagnoses, subject by subject.
func (v *vitals) diagnose() []Diagnosis {
	v.census = v.fleet.count()
	d := diagnoses{}
	for _, look := range []func(*diagnoses){
		v.version, v.persistence, v.eviction, v.access, v.replica, v.layout, v.clock,
		v.serverHealth, v.liveWorkers, v.silentWorkers, v.paused, v.openTasks, v.longRuns, v.memoryLeft,
	} {
		look(&d)
	}
	return d.all
}

type diagnoses struct{ all []Diagnosis }

func (d *diagnoses) ok(subject, format string, args ...any) {
	d.all = append(d.all, Diagnosis{SeverityOK, subject, fmt.Sprintf(format, args...), ""})
}

func (d *diagnoses) notice(subject, text, fix string) {
	d.all = append(d.all, Diagnosis{SeverityNotice, subject, text, fix})
}

func (d *diagnoses) problem(subject, text, fix string) {
	d.all = append(d.all, Diagnosis{SeverityProblem, subject, text, fix})
}

// worse adds a problem if tasks are unfinished, and otherwise a notice.
func (v *vitals) worse(d *diagnoses, subject, text, fix string) {
	if v.counts.Unfinished() > 0 {
		d.problem(subject, text, fix)
		return
	}
	d.notice(subject, text, fix)
}

func (v *vitals) embedded() bool { return v.info["redis_version"] == "" }

func (v *vitals) version(d *diagnoses) {
	version := v.info["redis_version"]
	major, _, _ := strings.Cut(version, ".")
	switch n, _ := strconv.Atoi(major); {
	case v.embedded():
		d.notice("redis", "it is the embedded Redis: when it ends, all tasks are gone, and it does not report its memory",
			"for real work, use a Redis of its own (docs/operations.md)")
	case n < 7:
		d.problem("redis", "its version is "+version, "use Redis 7.0 or later")
	default:
		d.ok("redis", "its version is %s", version)
	}
}

func (v *vitals) persistence(d *diagnoses) {
	if v.embedded() {
		return
	}
	before := len(d.all)
	if v.info["aof_enabled"] == "0" {
		d.problem("redis", "it has no append-only file: when it stops, it loses all changes since its last snapshot",
			"redis-cli config set appendonly yes, and the same in redis.conf")
	}
	for _, written := range []struct{ status, what string }{
		{"aof_last_write_status", "its append-only file could not be written"},
		{"aof_last_bgrewrite_status", "its append-only file could not be rewritten"},
		{"rdb_last_bgsave_status", "its last snapshot could not be written"},
	} {
		if is := v.info[written.status]; is != "" && is != "ok" {
			d.problem("redis", written.what+" ("+written.status+" is "+is+")", "read Redis's log; usually the disk is full, or there is too little memory for a fork")
		}
	}
	if len(d.all) == before {
		d.ok("redis", "it writes all changes to its append-only file")
	}
}

func (v *vitals) eviction(d *diagnoses) {
	if policy := v.info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		d.problem("redis", "when its memory is full, it evicts keys, and so loses tasks: maxmemory-policy is "+policy,
			"redis-cli config set maxmemory-policy noeviction, and the same in redis.conf")
	}
}

func (v *vitals) access(d *diagnoses) {
	ip := net.ParseIP(v.redis.Host)
	if v.redis.Password == "" && v.redis.Host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		d.problem("redis", "it has no password and is on a network: anyone who reaches it can run programs on the workers",
			"set requirepass in redis.conf, and the password in [redis] password or TDF_CFG_REDIS_PASSWORD")
	}
}

func (v *vitals) replica(d *diagnoses) {
	if v.info["role"] == "slave" {
		d.problem("redis", "it is a replica, which accepts no writes", "set [redis] host and port to its master")
	}
}

func (v *vitals) layout(d *diagnoses) {
	if v.schema != strconv.Itoa(redisstate.Schema) {
		d.notice("redis", fmt.Sprintf("the namespace has layout version %s, and this release writes version %d", v.schema, redisstate.Schema),
			"update all servers, workers and managers to this release")
	}
	if v.loading {
		d.problem("tasks", "a dump is being loaded, or its load was interrupted", "if nobody is loading it, load the same dump again")
	}
}

func (v *vitals) clock(d *diagnoses) {
	const tolerable = 2
	if off := float64(v.clockOff); math.Abs(off) > tolerable {
		d.notice("clock", fmt.Sprintf("this machine's clock is %+.0f s off Redis's clock, which decides all times", off),
			"synchronise both clocks (NTP); start_after and end_before are times of Redis's clock")
	}
}

func (v *vitals) serverHealth(d *diagnoses) {
	const fix = "start a server"
	const behind = tdf.Seconds(30)
	silent := v.at.Sub(v.fleet.server)
	switch {
	case v.fleet.server == 0:
		v.worse(d, "server", "none was ever seen in this namespace: executed tasks do not finish", fix)
	case v.fleet.serverMissing():
		v.worse(d, "server", fmt.Sprintf("none has been seen for %.0f s: executed tasks do not finish", silent), fix)
	case v.dueLag > behind:
		d.problem("server", fmt.Sprintf("it is %.0f s late with due tasks", v.dueLag), "read its log; start a server closer to Redis, or on a faster machine")
	default:
		d.ok("server", "a server was seen %.0f s ago", max(0, silent))
	}
}

func (v *vitals) liveWorkers(d *diagnoses) {
	switch {
	case v.alive == 0:
		v.worse(d, "workers", "no worker is alive: nothing runs", "start a worker")
	case v.claiming == 0:
		var names []string
		for i := range v.fleet.workers {
			if w := &v.fleet.workers[i]; w.Alive(v.at) {
				names = append(names, w.Name)
			}
		}
		v.worse(d, "workers", "all of them drain, start or stop, and claim no tasks: "+firstOf(names), "resume a worker, or start another one")
	default:
		d.ok("workers", "live: %d, claiming tasks: %d, busy slots: %d of %d", v.alive, v.claiming, v.busy, v.slots)
	}
}

// firstOf joins the first names of a list.
func firstOf(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// silentWorkers reports silent workers, but not those that have been silent for a day, because they were removed.
func (v *vitals) silentWorkers(d *diagnoses) {
	const removed = tdf.Seconds(24 * 3600)
	var silent []string
	for i := range v.fleet.workers {
		w := &v.fleet.workers[i]
		if v.fleet.stateOf(w) == workerSilent && v.at.Sub(w.Seen) < removed {
			silent = append(silent, w.Name)
		}
	}
	if len(silent) > 0 {
		d.problem("workers", "they stopped sending heartbeats without ending properly: "+firstOf(silent),
			"check their machines and processes, and start them again")
	}
}

// paused reports programs that workers pause. If all workers pause a program, none of its tasks runs.
func (v *vitals) paused(d *diagnoses) {
	const fix = "look at the failures of the program, or cancel its tasks (docs/operations.md, \"Programs that a worker pauses\")"
	for _, p := range v.fleet.pauses() {
		if text := p.Text(stdtime.Time(v.at)); p.All() {
			v.worse(d, "workers", text, fix)
		} else {
			d.notice("workers", text, fix)
		}
	}
}

// openTasks reports open tasks that wait though slots are free. A slot is also free for a moment between two tasks, so tasks that
// were claimed or executed lately rule out a problem.
func (v *vitals) openTasks(d *diagnoses) {
	const usual = tdf.Seconds(60)
	if v.waited > usual && v.free > 0 && v.at.Sub(v.moved) > idle {
		d.problem("tasks", fmt.Sprintf("the oldest open task has waited for %.0f s though %s free, and no task was claimed lately", v.waited, slotsAre(v.free)),
			"explain one of the open tasks")
	}
}

func slotsAre(n int) string {
	if n == 1 {
		return "1 slot is"
	}
	return fmt.Sprintf("%d slots are", n)
}

func (v *vitals) longRuns(d *diagnoses) {
	const most = 20
	for i, long := range v.long {
		if i == most {
			d.notice("tasks", fmt.Sprintf("%d more tasks have run for far longer than usual", len(v.long)-most), "list the running tasks")
			return
		}
		t := long.task
		d.notice("tasks", fmt.Sprintf("task %d has run for %.0f s on %s, and most runs of %s take %.3g s at most",
			t.ID, long.runs, t.Current().Worker, t.Program, long.usual), "requeue it if it hangs: that ends the program and runs the task again")
	}
}

// memoryLeft reports how much memory is left, and how many open tasks fit into it.
func (v *vitals) memoryLeft(d *diagnoses) {
	const little = 0.1
	m := v.memory
	limit, what := m.Limit, "maxmemory"
	if limit == 0 {
		limit, what = m.System, "the machine's memory"
	}
	if m.Used == 0 || limit == 0 {
		return
	}
	left := max(0, limit-m.Used)
	text := fmt.Sprintf("%.1f MB are used, and %.1f MB are left of %s", float64(m.Used)/1e6, float64(left)/1e6, what)
	if v.taskSize > 0 {
		text += fmt.Sprintf("; an open task takes about %d bytes: %d more fit", v.taskSize, left/v.taskSize)
	}
	fix := "archive and remove finished tasks, or raise maxmemory"
	switch {
	case float64(left) < little*float64(limit):
		d.problem("memory", text, fix)
	case m.Limit == 0:
		d.notice("memory", text, "set maxmemory below the machine's memory, so that Redis refuses new tasks before the system ends it")
	default:
		d.ok("memory", "%s", text)
	}
}
