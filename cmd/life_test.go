package cmd_test

import (
	"flag"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/expect"
)

var update = flag.Bool("update", false, "replacement of the golden files by the results of this run")

const goldenLife = "testdata/life.txt"

// Every version of TDF must write the same data to Redis. The test takes tasks through all states, with the commands of users
// and components. The record of the changes in Redis must equal the golden file (see [record]).
func TestRecordedLife(t *testing.T) {
	l := newLife(t)
	l.file("work/run.sh", workScript, 0o755)
	l.file("other/run.sh", "#!/bin/sh\necho \"other $*\"\n", 0o755)
	l.file("strange/run.sh", "#!/no/such/interpreter\n", 0o755)
	l.file("workers/old/run.sh", "#!/bin/sh\necho \"old $*\"\n", 0o755)
	l.file("workers/secrets", "TOKEN=8c1f-0a7e\n", 0o600)
	l.file("points.csv", "a,b\n1,x y\n2.50,\n", 0o644)
	l.file("more.csv", "a,b\n2.50,\n007,z\n", 0o644)

	l.openTasks()
	l.succeeded()
	l.failRounds()
	l.changeTasks()
	l.loseTasks()
	l.releaseTasks()
	l.requeueTasks()
	l.drained()
	l.expireTasks()
	l.actAsOriginal()
	l.pauseProgram()
	l.repairTasks()
	l.leapClock()
	l.removed()

	got := l.record.text.String()
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(goldenLife, []byte(got), 0o644))
	}
	want := expect.Result(os.ReadFile(goldenLife)).Value(t)
	diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n"))
	expect.Equal(t, diff, "", "the record differs (-want +got); if the change is intended, run go test ./cmd -run RecordedLife -update")
}

// Fixed times of the test. They do not depend on the clock.
const (
	began = "1000000000.250000"
	past  = "1000000001.000000"
	far   = "4102444800.000000"
)

// workScript is the program of most tasks. Its first argument selects its action. Each line that it prints to stderr begins with
// "err: ", so that withoutTexts keeps the line.
const workScript = `#!/bin/sh
case $1 in
say) shift; for word; do echo "<$word>"; done ;;
env) echo "$TDF_NAMESPACE $TDF_TASK_ID $TDF_ROUND $TDF_WORKER $TDF_TIMEOUT $TDF_END_BEFORE $TDF_GROUP $TDF_META $2 $3" ;;
secret) echo "the token is $TOKEN" ;;
fail) echo "out $2"; echo "err: it is $2" >&2; exit "$2" ;;
quiet) exit "$2" ;;
warn) echo "err: a warning" >&2 ;;
kill) kill -9 $$ ;;
hang) echo begun; exec sleep 1000 ;;
unparsable) echo '{"a":' >"$TDF_DIR/result.json" ;;
report)
	cd "$TDF_DIR"
	cat checkpoint last_error 2>/dev/null
	echo "0.5 half of $TDF_ROUND" >progress
	echo "seen $TDF_ROUND" >checkpoint
	printf 'first\nsecond of %s\n' "$TDF_ROUND" >>updates
	if [ "$TDF_ROUND" = 0 ]; then echo "err: once more" >&2; exit 1; fi
	echo '{"n": 1, "ü": [true, null]}' >result.json
	echo kept >files/kept
	;;
esac
`

// openTasks runs tdf open with all of its flags.
func (l *life) openTasks() {
	l.step("push a program", func() {
		l.tdf(0, "push", "work")
		l.source = "redis:" + l.do("ZRANGE", "$programs", 0, 0).([]any)[0].(string)
		l.work = "work-" + l.source[len("redis:"):][:8]
	})
	l.step("open with all properties", func() {
		l.open("all", "--program", l.work, "--source", l.source, "--input", `say 'two words' "" ü`, "--campaign", "first",
			"--meta", "data # of mine", "--timeout", "1000", "--max-fails", "2", "--max-timeouts", "1", "--max-losses", "5",
			"--fail-on", "any", "--start-after", "1000000000", "--end-before", "4102444800")
	})
	l.step("open with defaults", func() { l.open("defaults", "--program", l.work, "--source", l.source) })
	l.step("open from a directory", func() { l.open("secret", "--input", "secret") })
	l.step("open a sweep", func() {
		l.open("sweep", "--from", "points.csv", "--input", "env {a} {b}", "--campaign", "sweep", "--timeout", "90")
	})
	l.step("extend the sweep", func() {
		l.open("more", "--from", "more.csv", "--input", "env {a} {b}", "--campaign", "sweep", "--extend")
	})
	l.step("open a grid", func() { l.open("grid", "--grid", "what=say n=1..3", "--campaign", "grid") })
	l.step("open a task for later", func() { l.open("later", "--input", "say later", "--start-after", "4102444800", "--fail-on", "stderr") })
}

func (l *life) succeeded() {
	l.step("a worker executes the open tasks", func() {
		begun := l.now()
		w := l.worker("w1", "lease=600")
		l.awaitCount("open", 1)
		l.awaitCount("running", 0)
		l.awaitSuccess("w1", l.work, begun)
		l.stop(w)
	})
	l.step("a server settles, and wakes a manager", func() {
		l.do("ZADD", "$managers", far, "manager")
		s := l.server("")
		l.awaitCount("executed", 0)
		l.stop(s)
	})
	l.do("DEL", "$managers", "$wake:manager:manager")
	l.step("archive", func() { l.hand("archive {all} {defaults}") })
}

// failRounds runs tasks whose programs fail, time out or kill themselves. A server and a worker run at the same time.
func (l *life) failRounds() {
	l.step("open tasks that will fail", func() {
		l.open("fail", "--input", "fail 3", "--max-fails", "1")
		l.open("stderr", "--input", "fail 4", "--fail-on", "stderr")
		l.open("quiet", "--input", "quiet 5", "--fail-on", "any")
		l.open("warn", "--input", "warn", "--fail-on", "stderr")
		l.open("any", "--input", "warn", "--fail-on", "any")
		l.open("exit", "--input", "warn")
		l.open("kill", "--input", "kill")
		l.open("report", "--input", "report", "--max-fails", "1", "--campaign", "reports")
		l.open("unparsable", "--input", "unparsable")
		missing := strings.Repeat("0", 64) // stored only while the task is opened
		l.rdb.Set(l.Context(), namespace+":program:"+missing, "x", 0)
		l.open("missing", "--program", "none", "--source", "redis:"+missing)
		l.rdb.Del(l.Context(), namespace+":program:"+missing)
		l.open("hang", "--input", "hang", "--timeout", "1", "--max-timeouts", "1")
	})
	l.step("the tasks fail", func() {
		begun := l.now()
		w, s := l.worker("w1", "lease=600"), l.server("")
		l.awaitState("fail", "failed", 1)
		l.awaitState("report", "succeeded", 1)
		l.awaitState("hang", "timed_out", 1)
		l.awaitCount("executed", 0)
		l.awaitSuccess("w1", l.work, begun)
		l.stop(w, s)
	})
}

// changeTasks changes tasks with tdf set, retry and cancel. Meanwhile, no server and no worker runs.
func (l *life) changeTasks() {
	l.step("change an open task", func() {
		l.hand("set {later} --timeout 50 --max-fails 3 --max-timeouts 4 --max-losses 5 --fail-on exit --end-before 4102444801 " +
			"--meta mine --start-after 4102444700")
		l.hand("set {later} --program other --input changed --start-after 0 --end-before inf")
	})
	l.step("retry", func() { l.hand("retry {fail} {any}") })
	l.step("retry with changes", func() { l.hand("retry {kill} --program other --input again --max-fails 0 --timeout 7") })
	l.step("retry an archived task", func() { l.hand("retry {all}") })
	l.step("cancel the open tasks", func() { l.hand("cancel --state open") })
}

// loseTasks kills two workers. The server notices that the task of the first worker is lost. A new worker with the name
// of the second worker notices that the task of the second worker is lost.
func (l *life) loseTasks() {
	var w *process
	l.step("a task runs, and its lease is renewed", func() {
		l.open("lost", "--input", "hang", "--max-losses", "1")
		w = l.worker("w2", "lease=0.6")
		l.awaitRun("w2", "lost", 0)
	})
	l.step("its worker is killed, and the lease runs out", func() {
		w.kill()
		s := l.server("")
		l.awaitState("lost", "open", 1)
		l.stop(s)
	})
	l.step("a new worker of the same name notices that the killed worker's task is lost", func() {
		w = l.worker("w2", "lease=600")
		l.awaitState("lost", "running", 1)
		w.kill()
		lease := l.get(l.key("lost"), "lease_until")
		w = l.worker("w2", "lease=600")
		eventually(l, "the new worker has ended the lease", func() bool { return l.get(l.key("lost"), "lease_until") != lease })
		l.stop(w)
	})
	l.step("the task was lost too often", func() {
		s := l.server("")
		l.awaitState("lost", "failed", 1)
		l.stop(s)
	})
}

// releaseTasks lets workers release a task because they stop, or because they cannot run the program.
func (l *life) releaseTasks() {
	l.step("a worker stops", func() {
		l.open("released", "--input", "hang")
		w := l.worker("w2", "lease=0.6")
		l.awaitRun("w2", "released", 0)
		l.stop(w)
	})
	l.step("cancel the released task", func() { l.hand("cancel {released}") })
	l.step("a third worker cannot run a program", func() {
		l.open("strange", "--program", "strange")
		l.do("HSET", l.key("strange"), "unfit", 2)
		w := l.worker("w3", "lease=600")
		l.awaitState("strange", "executed", 1)
		w.kill() // a stopping worker would report for how long it pauses the program, and this time differs between two runs
		l.forgetPositions()
	})
	l.step("the task fails", func() {
		s := l.server("")
		l.awaitState("strange", "failed", 1)
		l.stop(s)
	})
}

// requeueTasks follows a running task with tdf output --follow. Then it takes running tasks from their workers with tdf
// requeue and tdf cancel.
func (l *life) requeueTasks() {
	var w1, w2 *process
	l.step("follow a running task", func() {
		l.open("requeued", "--input", "hang", "--campaign", "moved")
		w1 = l.worker("w1", "lease=0.6")
		l.awaitRun("w1", "requeued", 0)
		follow := launch(l.T, l.command("output", "--follow", l.id("requeued")), environment(), nil)
		l.awaitKey("$follow:" + l.id("requeued"))
		follow.signal(syscall.SIGINT)
		follow.exits(130, "")
	})
	l.do("DEL", "$follow:"+l.id("requeued"))
	l.step("requeue", func() {
		l.hand("requeue {requeued}")
		l.awaitRun("w1", "requeued", 1)
	})
	l.step("requeue elsewhere", func() {
		l.hand("requeue --worker w1 --elsewhere")
		l.awaitKey("$passed:*")
		l.wait("$worker:w1", "runs", "")
	})
	l.step("cancel a running task", func() {
		l.stop(w1)
		w2 = l.worker("w2", "lease=0.6")
		l.awaitRun("w2", "requeued", 2)
		l.hand("cancel {requeued}")
		l.wait("$worker:w2", "runs", "")
		l.stop(w2)
		l.forgetPositions()
	})
}

func (l *life) drained() {
	var w *process
	l.step("drain a worker", func() {
		begun := l.now()
		l.open("before", "--input", "say before")
		w = l.worker("w1", "lease=0.6")
		l.awaitState("before", "executed", 0)
		l.awaitSuccess("w1", l.work, begun)
		l.tdf(0, "drain", "w1")
		l.wait("$worker:w1", "state", "draining")
		l.wait("$worker:w1", "runs", "")
		l.open("drained", "--input", "say drained")
	})
	l.step("end the drain", func() {
		l.tdf(0, "drain", "--undo", "w1")
		l.awaitState("drained", "executed", 0)
		l.stop(w)
	})
}

// expireTasks lets tasks expire in each state. To save time, it sets their end_before and due times in Redis.
func (l *life) expireTasks() {
	var w *process
	l.step("an executed and a running task expire", func() {
		l.open("running", "--input", "hang")
		w = l.worker("w1", "lease=600")
		l.awaitState("running", "running", 0)
		l.do("HSET", l.key("drained"), "end_before", past)
		l.do("HSET", l.key("running"), "end_before", past)
		l.do("ZADD", "$due", past, l.id("running"))
		s := l.server("")
		l.awaitState("running", "expired", 0)
		l.awaitCount("executed", 0)
		l.stop(s, w)
	})
	l.step("an open task expires", func() {
		l.open("late", "--input", "say late")
		l.do("HSET", l.key("late"), "end_before", past)
		l.do("ZADD", "$due", past, l.id("late"))
		s := l.server("")
		l.awaitState("late", "expired", 0)
		l.stop(s)
	})
	l.step("a worker finds an open task that has expired", func() {
		l.do("DEL", "$servers")
		l.open("met", "--input", "say met")
		l.do("HSET", l.key("met"), "end_before", past)
		w = l.worker("w1", "lease=600")
		l.awaitState("met", "expired", 0)
		l.stop(w)
	})
}

// actAsOriginal sends the same commands to Redis as managers and workers of the original TDF.
func (l *life) actAsOriginal() {
	l.step("the original's manager opens a task", func() { l.openByHand("original", "program", "old", "input", "'one word' two") })
	l.step("a worker of this TDF executes the task", func() {
		begun := l.now()
		w := l.worker("old", "lease=600")
		l.awaitState("original", "executed", 0)
		l.awaitSuccess("old", "old", begun)
		l.stop(w)
	})
	l.step("the original's workers claim and commit, and its server and its manager stop half-way", func() {
		l.claimByHand("claimed")
		l.claimByHand("good")
		l.commitByHand("good", "")
		l.claimByHand("bad", "max_fails", 1)
		l.commitByHand("bad", "err: bad")
		l.claimByHand("slow", "timeout", 50)
		l.claimByHand("between", "timeout", 50, "max_timeouts", 1)
		l.moveByHand("between", "running", "timeout")
		l.claimByHand("broken")
		l.commitByHand("broken", "err: broken")
		l.moveByHand("broken", "executed", "failure")
		l.claimByHand("seen")
		l.commitByHand("seen", "")
		l.moveByHand("seen", "executed", "archived")
		l.do("HSET", l.key("seen"), "state", "succeeded", "0:succeeded", began)
	})
	l.step("a server of this TDF settles the tasks", func() {
		s := l.server("")
		l.awaitState("good", "succeeded", 0)
		l.awaitState("bad", "open", 1)
		l.awaitState("slow", "timed_out", 0)
		l.awaitState("between", "open", 1)
		l.awaitState("broken", "failed", 0)
		l.awaitState("seen", "archived", 0)
		eventually(l, "the task is in the set of due tasks", func() bool { return l.do("ZSCORE", "$due", l.id("claimed")) != nil })
		l.stop(s)
	})
	l.step("the original's worker commits", func() {
		l.commitByHand("claimed", "")
		s := l.server("")
		l.awaitState("claimed", "succeeded", 0)
		l.stop(s)
	})
	l.step("cancel the reopened tasks", func() { l.hand("cancel {bad} {between}") })
}

// pauseProgram lets a program fail until the worker pauses the program.
func (l *life) pauseProgram() {
	l.step("a worker pauses a program", func() {
		l.open("avoided", "--input", "fail 9")
		w := l.worker("w4", "lease=0.6\nmax_failures_in_row=1")
		eventually(l, "the worker pauses the program", func() bool { return l.get("$worker:w4", "pauses") != "" })
		l.wait("$worker:w4", "runs", "")
		l.stop(w)
	})
}

// repairTasks makes tasks inconsistent. Then tdf check and the server repair them.
func (l *life) repairTasks() {
	l.step("tasks are made inconsistent", func() {
		l.open("nowhere", "--input", "say nowhere")
		l.do("ZREM", "$open", l.id("nowhere"))
		l.open("twice", "--input", "say twice", "--campaign", "index")
		l.do("ZADD", "$failed", 5, l.id("twice"))
		l.open("unindexed", "--input", "say unindexed", "--campaign", "index", "--extend")
		l.do("ZREM", "$group:index", l.id("unindexed"))
		l.do("ZADD", "$group:index", 1<<40+999, 999)
		l.do("ZADD", "$succeeded", began, 998)
		l.do("ZREM", "$due", l.id("avoided"))
		l.open("abandoned", "--input", "say abandoned")
		l.do("HSET", l.key("abandoned"), "state", "running")
		l.do("HSET", l.key("all"), "fails", 7)
	})
	l.step("check", func() { l.tdf(3, "check") })
	l.step("repair", func() {
		l.tdf(3, "check", "--repair", "--wait", "10ms")
		l.do("HSET", l.key("all"), "fails", 0)
		l.tdf(0, "check")
	})
	l.step("a server repairs a task, and refuses an invalid task", func() {
		l.do("ZREM", "$open", l.id("nowhere"))
		l.openByHand("invalid", "program", "old", "input", "'unclosed")
		s := l.server("audit_grace=0.05")
		l.awaitState("invalid", "failed", 0)
		eventually(l, "the server has repaired the task", func() bool { return l.do("ZSCORE", "$open", l.id("nowhere")) != nil })
		l.stop(s)
	})
}

// leapClock writes times in the future into Redis, as if the clock had been set back. It also starts a server after a
// time without servers.
func (l *life) leapClock() {
	l.step("scores and leases lie in the future", func() {
		l.hand("cancel --state open")
		l.open("ahead", "--input", "hang", "--campaign", "last")
		w := l.worker("w1", "lease=600")
		l.awaitState("ahead", "running", 0)
		w.kill()
		l.open("future", "--input", "say future", "--campaign", "last", "--extend")
		l.do("ZADD", "$open", far, l.id("future"))
		l.do("HSET", l.key("ahead"), "lease_until", far)
		l.do("ZADD", "$due", far, l.id("ahead"))
		s := l.server("")
		eventually(l, "the server has shortened the lease", func() bool { return l.get(l.key("ahead"), "lease_until") != far })
		eventually(l, "the server has corrected the score", func() bool { return l.rdb.ZScore(l.Context(), namespace+":open", l.id("future")).Val() < 4e9 })
		l.stop(s)
	})
	l.step("a server begins a grace period", func() {
		l.do("DEL", "$servers")
		l.do("ZADD", "$servers", began, "before")
		s := start(l.T, "tdf-server", "s", l.config("", ""))
		l.awaitKey("$calm")
		eventually(l, "the server serves", func() bool { return l.do("ZSCORE", "$servers", "s") != nil })
		l.stop(s)
	})
}

func (l *life) removed() {
	l.step("remove tasks", func() { l.hand("rm {report} {all} {strange}") })
	l.step("remove programs", func() { l.tdf(0, "programs", "rm", "--unused", "--yes") })
}
