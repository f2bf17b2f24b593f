package admin

import (
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/friend"
	"github.com/tdf-framework/tdf/redisstate"
)

// diagnose says what there is to say, one subject after the other.
func (v *vitals) diagnose() []Diagnosis {
	d := diagnoses{}
	for _, look := range []func(*diagnoses){
		v.version, v.persistence, v.eviction, v.access, v.replica, v.layout, v.clock,
		v.server, v.liveWorkers, v.silentWorkers, v.paused, v.waiting, v.runs, v.memory,
	} {
		look(&d)
	}
	return d.all
}

type diagnoses struct{ all []Diagnosis }

func (d *diagnoses) ok(subject, format string, args ...any) {
	d.all = append(d.all, Diagnosis{SeverityOK, subject, fmt.Sprintf(format, args...), ""})
}

func (d *diagnoses) notice(subject, text, cure string) {
	d.all = append(d.all, Diagnosis{SeverityNotice, subject, text, cure})
}

func (d *diagnoses) problem(subject, text, cure string) {
	d.all = append(d.all, Diagnosis{SeverityProblem, subject, text, cure})
}

// worse is a problem while there is work to do, and else a notice.
func (v *vitals) worse(d *diagnoses, subject, text, cure string) {
	if v.stats.Counts.Unfinished() > 0 {
		d.problem(subject, text, cure)
		return
	}
	d.notice(subject, text, cure)
}

func (v *vitals) embedded() bool { return v.info["redis_version"] == "" }

func (v *vitals) version(d *diagnoses) {
	version := v.info["redis_version"]
	major, _, _ := strings.Cut(version, ".")
	switch n, _ := strconv.Atoi(major); {
	case v.embedded():
		d.notice("redis", "it is an embedded one: nothing is kept when it ends, and it tells nothing about its memory",
			"in earnest, use a Redis of its own: tdf up --data DIR, or docs/operations.md")
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
		d.problem("redis", "it keeps no append-only file: what happened since its last snapshot is lost when it stops",
			"redis-cli config set appendonly yes, and the same in redis.conf")
	}
	for _, written := range []struct{ status, what string }{
		{"aof_last_write_status", "its append-only file could not be written"},
		{"aof_last_bgrewrite_status", "its append-only file could not be written anew"},
		{"rdb_last_bgsave_status", "its last snapshot could not be written"},
	} {
		if is := v.info[written.status]; is != "" && is != "ok" {
			d.problem("redis", written.what+" ("+written.status+" is "+is+")", "see Redis's log; mostly the disk is full, or memory is too short for a fork")
		}
	}
	if len(d.all) == before {
		d.ok("redis", "what happens is written to its append-only file")
	}
}

func (v *vitals) eviction(d *diagnoses) {
	if policy := v.info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		d.problem("redis", "when its memory is full it throws keys away, and tasks with them: maxmemory-policy is "+policy,
			"redis-cli config set maxmemory-policy noeviction, and the same in redis.conf")
	}
}

func (v *vitals) access(d *diagnoses) {
	ip := net.ParseIP(v.redis.Host)
	if v.redis.Password == "" && v.redis.Host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		d.problem("redis", "it is reached over a network without a password: whoever reaches it can run programs on the workers",
			"set requirepass in redis.conf, and [redis] password, or TDF_CFG_REDIS_PASSWORD")
	}
}

func (v *vitals) replica(d *diagnoses) {
	if v.info["role"] == "slave" {
		d.problem("redis", "it is a replica, which takes no writes", "name its master in [redis] host and port")
	}
}

func (v *vitals) layout(d *diagnoses) {
	if v.schema != strconv.Itoa(redisstate.Schema) {
		d.notice("redis", fmt.Sprintf("the namespace has layout version %s, and this release writes version %d", v.schema, redisstate.Schema),
			"bring all servers, workers and managers to this release")
	}
	if v.loading {
		d.problem("tasks", "a dump is being loaded, or was not loaded to its end", "if nobody loads it now, load the same dump again: tdf load FILE")
	}
}

func (v *vitals) clock(d *diagnoses) {
	const tolerable = 2
	if off := float64(v.clockOff); math.Abs(off) > tolerable {
		d.notice("clock", fmt.Sprintf("this machine's clock is %+.0f s off that of Redis, which is the one that counts", off),
			"have both synchronised (NTP); start_after and end_before are told by Redis's clock")
	}
}

func (v *vitals) server(d *diagnoses) {
	const cure = "start tdf-server"
	const behind = tdf.Seconds(30)
	silent := v.stats.At.Sub(v.stats.Server)
	switch {
	case v.stats.Server == 0:
		v.worse(d, "server", "none was ever seen in this namespace: what is executed is not judged", cure)
	case silent > friend.ServerPatience:
		v.worse(d, "server", fmt.Sprintf("none has been seen for %.0f s: what is executed is not judged", silent), cure)
	case v.stats.DueLag > behind:
		d.problem("server", fmt.Sprintf("it is %.0f s behind with what it must look at", v.stats.DueLag), "see its log; start one nearer to Redis, or on a machine that has more to give")
	default:
		d.ok("server", "one was seen %.0f s ago", max(0, silent))
	}
}

func (v *vitals) liveWorkers(d *diagnoses) {
	alive, claiming, draining := 0, 0, []string{}
	for i := range v.workers {
		w := &v.workers[i]
		switch {
		case !w.Alive:
			continue
		case w.claims():
			claiming++
		default:
			draining = append(draining, w.Name)
		}
		alive++
	}
	switch {
	case alive == 0:
		v.worse(d, "workers", "none is there: nothing runs", "start tdf-worker")
	case claiming == 0:
		v.worse(d, "workers", "all of them drain, and claim nothing more: "+firstOf(draining), "tdf drain --undo WORKER, or start another one")
	default:
		d.ok("workers", "live: %d, claiming tasks: %d, busy slots: %d of %d", alive, claiming, v.stats.Busy, v.stats.Slots)
	}
}

// firstOf names the first few.
func firstOf(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// silentWorkers: after a day, one that is silent was taken away, and not lost.
func (v *vitals) silentWorkers(d *diagnoses) {
	const forgotten = tdf.Seconds(24 * 3600)
	var silent []string
	for _, w := range v.workers {
		if !w.Alive && w.State != "gone" && v.stats.At.Sub(w.Seen) < forgotten {
			silent = append(silent, w.Name)
		}
	}
	if len(silent) > 0 {
		d.problem("workers", "without a word they have stopped sending heartbeats: "+firstOf(silent),
			"see whether their machines and processes are there (tdf workers), and start them again")
	}
}

// paused: where all workers pause a program, none of its tasks is run.
func (v *vitals) paused(d *diagnoses) {
	const cure = "tdf failures says what fails; tdf watch CAMPAIGN --stop-after N gives up a campaign when N tasks have failed; docs/operations.md, \"Programs that a worker pauses\""
	for _, p := range pausesOf(v.workers) {
		if text := p.Text(v.stats.At); p.All() {
			v.worse(d, "workers", text, cure)
		} else {
			d.notice("workers", text, cure)
		}
	}
}

// waiting: there are tasks that may run, and slots that are free, and still they wait. A slot is free between any two tasks:
// where one was claimed or ended lately, nothing is the matter.
func (v *vitals) waiting(d *diagnoses) {
	const usual = tdf.Seconds(60)
	if free := v.freeSlots(); v.stats.Waited > usual && free > 0 && v.stats.At.Sub(v.moved) > idle {
		d.problem("tasks", fmt.Sprintf("the oldest open one has waited for %.0f s, though %s free, and nothing was claimed lately", v.stats.Waited, slotsAre(free)),
			"tdf ls --state open, and tdf explain ID")
	}
}

// freeSlots counts those of workers that claim, both by what the workers said last and by how many tasks run: either may be late.
func (v *vitals) freeSlots() int {
	free := 0
	for i := range v.workers {
		if w := &v.workers[i]; w.Alive && w.claims() {
			free += max(0, w.Slots-len(w.Runs))
		}
	}
	return max(0, min(free, v.stats.Slots-v.stats.Busy))
}

func slotsAre(n int) string {
	if n == 1 {
		return "1 slot is"
	}
	return fmt.Sprintf("%d slots are", n)
}

func (v *vitals) runs(d *diagnoses) {
	const most = 20
	for i, long := range v.long {
		if i == most {
			d.notice("tasks", fmt.Sprintf("%d more run for far longer than is usual", len(v.long)-most), "tdf ls --state running")
			return
		}
		t := long.task
		d.notice("tasks", fmt.Sprintf("%d has run for %.0f s on %s, and most runs of %s take %.3g s at most",
			t.ID, long.runs, t.Current().Worker, t.Program, long.usual), fmt.Sprintf("tdf show %d; tdf requeue %[1]d ends it and runs it again", t.ID))
	}
}

// memory says how much is left, and what of that open tasks take.
func (v *vitals) memory(d *diagnoses) {
	const little = 0.1
	m := v.stats.Memory
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
		text += fmt.Sprintf("; an open task takes some %d bytes: %d more fit", v.taskSize, left/v.taskSize)
	}
	cure := "archive and remove finished tasks (tdf rm), or raise maxmemory"
	switch {
	case float64(left) < little*float64(limit):
		d.problem("memory", text, cure)
	case m.Limit == 0:
		d.notice("memory", text, "set maxmemory below what the machine has, so that Redis refuses new tasks before it is ended")
	default:
		d.ok("memory", "%s", text)
	}
}
