package admin

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// diagnose returns the diagnoses, ordered by subject.
func (v *vitals) diagnose() []Diagnosis {
	v.census = v.fleet.count()
	d := diagnoses{}
	for _, look := range []func(*diagnoses){
		v.version, v.persistence, v.eviction, v.tuning, v.access, v.rights, v.replica, v.layout, v.clock,
		v.serverHealth, v.shortages, v.liveWorkers, v.silentWorkers, v.pausedPrograms, v.pauses, v.limitsInUse,
		v.periodicTasks, v.waitingTasks, v.openTasks, v.unservedTasks, v.originalWorkers, v.longRuns, v.invalidSettings,
		v.tasksLimit, v.memoryLeft, v.memoryWaits, v.managers,
	} {
		look(&d)
	}
	return d.all
}

type diagnoses struct{ all []Diagnosis }

func (d *diagnoses) add(severity, subject string, f Fact) {
	d.all = append(d.all, Diagnosis{severity, subject, f})
}

func (d *diagnoses) ok(subject, format string, args ...any) {
	d.add(SeverityOK, subject, Fact{Text: fmt.Sprintf(format, args...)})
}

func (d *diagnoses) notice(subject string, f Fact) { d.add(SeverityNotice, subject, f) }

func (d *diagnoses) problem(subject string, f Fact) { d.add(SeverityProblem, subject, f) }

// held adds a Fact that keeps tasks from finishing: a problem if there are unfinished tasks, and otherwise a notice.
func (v *vitals) held(d *diagnoses, subject string, f Fact) {
	if v.counts.Unfinished() > 0 {
		d.problem(subject, f)
		return
	}
	d.notice(subject, f)
}

func (v *vitals) embedded() bool { return v.info["redis_version"] == "" }

func (v *vitals) version(d *diagnoses) {
	version := v.info["redis_version"] // of Valkey, the version of Redis with which it is compatible
	major, _, _ := strings.Cut(version, ".")
	switch n, _ := strconv.Atoi(major); {
	case v.embedded():
		d.notice("redis", Fact{
			Code: FactEmbeddedRedis,
			Text: "this is the embedded Redis: it loses all tasks when it ends, and it does not report its memory",
			Fix:  fix("for real work, run a Redis server (docs/operations.md)"),
		})
	case n < 7:
		d.problem("redis", Fact{
			Code: FactRedisVersion, Text: "Redis has version " + version,
			Fix: fix("use Redis 7.0 or later"),
		})
	case v.info["valkey_version"] != "":
		d.ok("redis", "Redis is Valkey %s", v.info["valkey_version"])
	default:
		d.ok("redis", "Redis has version %s", version)
	}
}

func (v *vitals) persistence(d *diagnoses) {
	if v.embedded() {
		return
	}
	before := len(d.all)
	if v.info["aof_enabled"] == "0" {
		d.problem("redis", Fact{
			Code: FactNoAppendOnlyFile,
			Text: "Redis has no append-only file: when it stops, it loses all changes since its last snapshot",
			Fix:  fix("run redis-cli config set appendonly yes, and set the same in redis.conf"),
		})
	}
	for _, written := range []struct{ status, what string }{
		{"aof_last_write_status", "Redis could not write its append-only file"},
		{"aof_last_bgrewrite_status", "Redis could not rewrite its append-only file"},
		{"rdb_last_bgsave_status", "Redis could not write its last snapshot"},
	} {
		if is := v.info[written.status]; is != "" && is != "ok" {
			d.problem("redis", Fact{
				Code: FactRedisCannotWrite, Text: written.what + " (" + written.status + " is " + is + ")",
				Fix: fix("read Redis's log; usually the disk is full, or Redis has too little memory for a fork"),
			})
		}
	}
	if len(d.all) == before {
		d.ok("redis", "Redis writes all changes to its append-only file")
	}
}

func (v *vitals) eviction(d *diagnoses) {
	if policy := v.info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		d.problem("redis", Fact{
			Code: FactEviction,
			Text: "when its memory is full, Redis evicts keys and loses tasks: maxmemory-policy is " + policy,
			Fix:  fix("run redis-cli config set maxmemory-policy noeviction, and set the same in redis.conf"),
		})
	}
}

// tuning reports settings with which Redis needs more memory or time than with those that TDF ships.
func (v *vitals) tuning(d *diagnoses) {
	for _, t := range v.untuned {
		d.notice("redis", Fact{
			Code: FactRedisSetting, Text: fmt.Sprintf("a setting of Redis costs %s: %s is %s", t.Costs, t.Name,
				t.Found),
			Fix: fix(fmt.Sprintf("run redis-cli config set %s %d, and redis-cli config rewrite; it holds for new keys",
				t.Name, t.Value)),
		})
	}
}

func (v *vitals) access(d *diagnoses) {
	if v.redis.Password == "" && !v.redis.Local() {
		d.problem("redis", Fact{
			Code: FactNoPassword, Text: "Redis has no password and is reachable from a network: any client in the " +
				"network can run programs on the workers",
			Fix: fix("set requirepass in redis.conf, and the password in [redis] password or TDF_CFG_REDIS_PASSWORD"),
		})
	}
}

func (v *vitals) rights(d *diagnoses) {
	if v.lacks != nil {
		d.problem("redis", Fact{
			Code: FactMissingRights, Text: v.lacks.Error(),
			Fix: fix("grant the rights with ACL SETUSER (docs/operations.md, \"Redis\")"),
		})
	}
}

func (v *vitals) replica(d *diagnoses) {
	if v.info["role"] == "slave" {
		d.problem("redis", Fact{
			Code: FactReplica, Text: "this Redis is a replica, and a replica accepts no writes",
			Fix: fix("set [redis] host and port to the replica's master"),
		})
	}
	replicas := v.replication.Replicas
	if !v.redis.Fixed() && len(replicas) == 0 {
		d.problem("redis", Fact{
			Code: FactNoReplica, Text: "the primary " + v.replication.Primary + " has no replica that could take over",
			Fix: fix("start a Redis with replicaof, or read the log of the replica"),
		})
	}
	if wanted, n := v.redis.Replicas.Wanted, v.replication.Online(); n < wanted {
		d.problem("redis", Fact{
			Code: FactTooFewReplicas,
			Text: fmt.Sprintf("[redis] replicas=%d, but online replicas: %d; calls that write wait", wanted, n),
			Fix:  fix("start a Redis with replicaof, or lower [redis] replicas"),
		})
	}
	var all []string
	for _, r := range replicas {
		all = append(all, r.String())
		if r.Lags() {
			d.problem("redis", Fact{
				Code: FactReplicaLags, Text: fmt.Sprintf("a replica of the primary %s lags: %s", v.replication.Primary, r),
				Fix: fix("read the log of the replica; look at its network, and at client-output-buffer-limit"),
			})
		}
	}
	if len(replicas) > 0 {
		d.ok("redis", "the primary is %s, with %s", v.replication.Primary, strings.Join(all, ", "))
	}
	if v.replication.NoQuorum() {
		d.problem("redis", Fact{
			Code: FactNoQuorum, Text: fmt.Sprintf("%d of %d sentinels work, so they do not replace a lost primary",
				v.replication.SentinelsUp, v.replication.Sentinels),
			Fix: fix("start the other sentinels; if some no longer exist, run sentinel reset on the others, one by one"),
		})
	}
}

func (v *vitals) layout(d *diagnoses) {
	if v.schema != strconv.Itoa(conn.Schema) {
		d.notice("redis", Fact{
			Code: FactLayout, Text: fmt.Sprintf(
				"the namespace has layout version %s, and this release writes version %d", v.schema, conn.Schema),
			Fix: fix("update all servers, workers and managers to this release"),
		})
	}
}

func (v *vitals) clock(d *diagnoses) {
	const tolerable, harmful = 2, 60
	if off := math.Abs(float64(v.clockOff)); off > tolerable {
		severity := SeverityNotice
		if off > harmful {
			severity = SeverityProblem
		}
		d.add(severity, "clock", Fact{
			Code: FactClock, Text: fmt.Sprintf(
				"this machine's clock is %+.0f s off Redis's clock, which decides all times", v.clockOff),
			Fix: fix("synchronise both clocks (NTP), because start_after and end_before are compared with Redis's " +
				"clock"),
		})
	}
}

func (v *vitals) serverHealth(d *diagnoses) {
	const behind = task.Seconds(30)
	switch fact, missing := v.noServer(); {
	case missing && slices.ContainsFunc(v.periodics, v.isOverdue):
		d.problem("server", fact)
	case missing:
		v.held(d, "server", fact)
	case v.dueLag > behind:
		d.problem("server", Fact{
			Code: FactServerLate, Text: fmt.Sprintf("the server is %.0f s late with due tasks", v.dueLag),
			Fix: fix("read the server's log; start a server closer to Redis, or on a faster machine"),
		})
	default:
		d.ok("server", "a server was seen %.0f s ago", max(0, v.at.Sub(v.server)))
	}
}

func (v *vitals) liveWorkers(d *diagnoses) {
	switch fact, missing := v.noWorker(); {
	case v.alive == 0 && len(v.original) > 0: // see originalWorkers
	case missing:
		v.held(d, "workers", fact)
	default:
		d.ok("workers", "live: %d, claiming tasks: %d, busy slots: %d of %d", v.alive, v.claiming, v.busy, v.slots)
	}
}

// silentWorkers reports workers whose heartbeats have stopped. It omits workers that have been silent for a day,
// because an operator probably removed them.
func (v *vitals) silentWorkers(d *diagnoses) {
	const removed = task.Seconds(24 * 3600)
	var silent []string
	for i := range v.fleet.workers {
		w := &v.fleet.workers[i]
		if v.fleet.stateOf(w) == WorkerSilent && v.at.Sub(w.Seen) < removed {
			silent = append(silent, w.Name)
		}
	}
	if len(silent) > 0 {
		d.problem("workers", Fact{
			Code: FactSilentWorkers, Text: "workers stopped sending heartbeats, but did not report their end: " +
				joinNames(silent),
			Fix: fix("check their machines and processes, and start the workers again", StepListWorkers),
		})
	}
}

// shortages reports each worker that lacks something which rounds need, such as space on its disk. The worker itself
// says what helps.
func (v *vitals) shortages(d *diagnoses) {
	for i := range v.fleet.workers {
		w := &v.fleet.workers[i]
		if w.Shortage == "" || !w.Claims(v.at) {
			continue
		}
		why, remedy := w.Shortage, ""
		if at := strings.LastIndex(why, "; "); at >= 0 {
			why, remedy = why[:at], why[at+2:]
		}
		text := fmt.Sprintf("worker %s: %s", w.Name, why)
		d.problem("workers", Fact{Code: FactWorkerShort, About: w.Name, Text: text, Fix: fix(remedy)})
	}
}

// pausedPrograms reports each program that is held, so that none of its tasks runs.
func (v *vitals) pausedPrograms(d *diagnoses) {
	for _, p := range v.fleet.pauses() {
		v.held(d, "workers", v.programHeld(&p))
	}
}

// openTasks reports a problem if open tasks wait although slots are free. Slots are also free for a moment between two
// tasks. So openTasks reports a problem only if no task was claimed or executed lately, and if nothing is paused.
func (v *vitals) openTasks(d *diagnoses) {
	const usual = task.Seconds(60)
	if len(v.paused) == 0 && !v.waitForLimits() && v.waited > usual && v.free > 0 && v.at.Sub(v.moved) > idle {
		d.problem("tasks", Fact{Code: FactIdleSlots, Text: fmt.Sprintf("the oldest open task has waited for %.0f s "+
			"although %s free, and no task was claimed lately", v.waited, slotsAre(v.free)), Fix: toExplain})
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
			d.notice("tasks", Fact{
				Code: FactLongRun, Text: fmt.Sprintf("%d more tasks have run for far longer than other runs of "+
					"their programs", len(v.long)-most),
				Fix: fix("list the running tasks", StepListRunning),
			})
			return
		}
		t := long.task
		d.notice("tasks", Fact{
			Code: FactLongRun,
			Text: fmt.Sprintf("task %d has run for %.0f s on %s; 95 of 100 runs of %s take at most %.3g s",
				t.ID, long.runs, t.Current().Worker, t.Program, long.usual),
			Fix: fix("if the program hangs, requeue the task: this ends the program and runs the task again",
				StepRequeue),
		})
	}
}

// memoryLeft reports how much memory is left, and how many more open tasks fit into it.
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
	text := fmt.Sprintf("%.1f MB are used, and %.1f MB of %s are left", float64(m.Used)/1e6, float64(left)/1e6, what)
	if v.taskSize > 0 {
		text += fmt.Sprintf("; an open task takes about %d bytes, so %d more open tasks fit", v.taskSize,
			left/v.taskSize)
	}
	switch {
	case float64(left) < little*float64(limit):
		d.problem("memory", Fact{Code: FactMemoryLow, Text: text, Fix: toRaiseMemory})
	case m.Limit == 0:
		d.notice("memory", Fact{
			Code: FactNoMaxmemory, Text: text,
			Fix: fix("set maxmemory below the machine's memory: without it, the setting high_water has no effect, " +
				"and the operating system may end Redis"),
		})
	default:
		d.ok("memory", "%s", text)
	}
}

func (v *vitals) invalidSettings(d *diagnoses) {
	if v.invalid != nil {
		text := strings.ReplaceAll(v.invalid.Error(), "\n", "; ")
		d.problem("redis", Fact{
			Code: FactInvalidSetting, Text: "the namespace has an invalid setting, and its default holds: " + text,
			Fix: fix("change the setting", StepChangeSetting),
		})
	}
}

// tasksLimit reports whether the namespace can hold more tasks.
func (v *vitals) tasksLimit(d *diagnoses) {
	const nearly = 0.9
	stored, most := v.counts.Total(), v.settings.MaxTasks
	if most == task.NoLimit {
		return
	}
	text := fmt.Sprintf("the namespace holds %d tasks, and its setting max_tasks is %d", stored, most)
	switch toMake := toRemove.or(fix("raise max_tasks", StepRaiseMaxTasks)); {
	case stored >= most:
		d.problem("tasks", Fact{Code: FactMaxTasks, Text: text + ": new tasks are refused", Fix: toMake})
	case float64(stored) > nearly*float64(most):
		d.notice("tasks", Fact{Code: FactMaxTasks, Text: text, Fix: toMake})
	default:
		d.ok("tasks", "%s", text)
	}
}

// memoryWaits reports whether new tasks or claims wait for memory.
func (v *vitals) memoryWaits(d *diagnoses) {
	if fact, waits := v.memoryWait(); waits {
		d.problem("memory", fact)
	}
}

// The severities of diagnoses.
const (
	SeverityOK      = "ok"
	SeverityNotice  = "notice"
	SeverityProblem = "problem" // tasks cannot finish or may be lost, or other people may be able to run programs
)

// A Diagnosis is a finding of [Admin.Diagnose] about one subject.
type Diagnosis struct {
	Severity string `json:"severity"`
	Subject  string `json:"subject"` // redis, server, workers, pause, limit, periodic, memory, tasks or clock
	Fact
}

// Diagnose checks Redis and its settings, the server, the workers and the tasks. It returns a diagnosis for each
// subject that it checked. The embedded Redis reports little about itself, so it gets fewer diagnoses.
func (a *Admin) Diagnose(ctx context.Context) ([]Diagnosis, error) {
	s := a.redis()
	v := vitals{redis: a.parts.Config.Redis}
	for _, step := range []func(context.Context, *redisstate.Store, *vitals) error{
		vitalsOfRedis, vitalsOfTasks, vitalsOfWaits, vitalsOfMoves, vitalsOfRuns, vitalsOfPeriodics,
	} {
		if err := step(ctx, s, &v); err != nil {
			return nil, fmt.Errorf("diagnose the namespace: %w", err)
		}
	}
	return v.diagnose(), nil
}

// pauses reports what is paused, because a user may have forgotten it.
func (v *vitals) pauses(d *diagnoses) {
	for _, p := range v.paused[:min(len(v.paused), mostNamed)] {
		d.notice("pause", v.pauseFact(p))
	}
	if more := len(v.paused) - mostNamed; more > 0 {
		d.notice("pause", Fact{
			Code: FactPaused, Text: fmt.Sprintf("%d more queues or groups are paused", more),
			Fix: toEndPause,
		})
	}
}
