package worker

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
)

// A fault is a program that does something wrong, with the expected effects on its task and its worker.
type fault struct {
	script string // if it does not begin with #!, the test puts lines before it that record its process
	set    func(w *world)
	task   func(d *task.Properties)
	during func(r *runningWorker) // called when two processes run; after that call, the test fires the worker's timers

	want  ended
	says  []string                                             // parts of the error, if another program writes its exact text
	log   string                                               // part of the worker's log
	check func(t *testing.T, r *runningWorker, one *task.Task) // more checks of the task and the worker
}

const noting = "#!/bin/sh\nulimit -c 0\necho $$ >>$PIDS\n"

// bothNoted is a line of a script. It waits until a second process has recorded itself.
const bothNoted = `until [ "$(wc -l <$PIDS)" -ge 2 ]; do sleep 0.01; done
`

// deaf is a program that ignores SIGTERM. It has a child, in a session of its own, that also ignores SIGTERM.
const deaf = "trap '' TERM; echo out; setsid sh -c 'trap \"\" TERM; echo $$ >>$PIDS; while :; do sleep 1000; done' &\n" +
	bothNoted + "while :; do sleep 1000; done\n"

var daemons = map[string]fault{
	"setsid daemon": {
		script: "setsid sh -c 'echo $$ >>$PIDS; exec sleep 1000' >/dev/null 2>&1 &\n" + bothNoted + "echo out\n",
		want:   ended{tdf.Succeeded, "out\n", "", "0"},
	},
	"SIGTERM ignored at the timeout": {
		script: deaf,
		task:   timeout,
		during: func(r *runningWorker) {
			r.timers.fireBetween(r, 15*time.Minute, 17*time.Minute)
			r.timers.fire(r, r.cfg.KillGrace)
		},
		want: ended{tdf.TimedOut, "out\n", "timed out: it ran for longer than 1000 s, and printed nothing to stderr", "signal: killed"},
		log:  `msg="timed out"`,
	},
	"SIGTERM ignored by a process left behind": {
		script: "trap '' TERM; setsid sh -c 'echo $$ >>$PIDS; while :; do sleep 1000; done' &\n" + bothNoted + "echo out\n",
		during: func(r *runningWorker) { r.timers.fire(r, r.cfg.KillGrace) },
		want:   ended{tdf.Succeeded, "out\n", "", "0"},
	},
}

var outputs = map[string]fault{
	"1 GB on each output": {
		script: "printf 'begin\\n' | tee -a /proc/self/fd/2; truncate -s 1G /proc/self/fd/1 /proc/self/fd/2\n" +
			"head -c 10000000 /dev/zero | tee -a /proc/self/fd/2; printf 'end\\n' | tee -a /proc/self/fd/2\n",
		task: failOn(tdf.FailOnExit),
		want: ended{tdf.Succeeded, "*", "", "0"}, // the function check compares the output
		check: func(t *testing.T, r *runningWorker, one *task.Task) {
			round := one.Current()
			cutFrom(t, round.Output, round.OutputBytes, r.path("p/results/w1-2-0.out"))
			cutFrom(t, round.Error, round.ErrorBytes, r.path("p/results/w1-2-0.err"))
		},
	},
}

var ends = map[string]fault{
	"fails, with a good result": {
		script: `echo '{"a": 1}' >$TDF_DIR/result.json; exit 3`,
		task:   failOn(tdf.FailOnExit),
		want:   ended{tdf.Failed, "", "run.sh ended with exit status 3 and printed nothing to stderr", "3"},
		check: func(t *testing.T, _ *runningWorker, one *task.Task) {
			expect.Equal(t, one.Current().Result, "{\"a\": 1}\n", "the result")
		},
	},
	"the program's directory removed": {
		script: "rm -r ../p; cd /; echo end",
		want:   ended{tdf.Succeeded, "end\n", "", "0"},
	},
	"the working directory removed": {
		script: "rm -r \"$(cd .. && pwd)\"; cd /; echo end",
		want:   ended{tdf.Succeeded, "end\n", "", "0"},
		check: func(t *testing.T, r *runningWorker, _ *task.Task) {
			one := r.over(r.open("", func(d *task.Properties) { d.Program = "other" }))
			expect.Equal(t, one.State, tdf.Open)
			expect.Equal(t, one.Releases, 1)
			has(t, one.Log, "released: ")
			has(t, one.Log, "no such file or directory")
			r.script("next", good) // the cause of the failure is removed
		},
	},
}

func TestFaults(t *testing.T) {
	for kind, faults := range map[string]map[string]fault{
		"processes": daemons, "output": outputs, "end": ends, "directory": directories,
	} {
		for name, f := range faults {
			t.Run(kind+"/"+name, func(t *testing.T) { f.happen(t, newWorld(t)) })
		}
	}
}

// happen runs the program, and checks the result. Then it checks that nothing remains of the round, and that the worker
// still runs tasks.
func (f fault) happen(t *testing.T, w *world) {
	if strings.HasPrefix(f.script, "#!") {
		w.script("p", f.script)
	} else {
		w.script("p", noting+f.script)
	}
	if f.set != nil {
		f.set(w)
	}
	r := w.work(f)
	id := r.open("", func(d *task.Properties) {
		if f.task != nil {
			f.task(d)
		}
	})
	if f.during != nil {
		eventually(t, "two processes", func() bool {
			text := expect.Result(os.ReadFile(r.pids)).Value(t)
			return strings.Count(string(text), "\n") == 2
		})
		f.during(r)
	}
	one := r.over(id)
	f.compare(t, one)
	if f.check != nil {
		f.check(t, r, one)
	}
	r.next()
	w.logged(f.log) // the log must already contain the message
	expect.True(t, !strings.Contains(w.log.String(), secret), "a secret is in the log")
	r.nothingRemains(r.before)
	r.stop()
}

func (f fault) compare(t *testing.T, one *task.Task) {
	t.Helper()
	round := one.Rounds.At(0)
	got, want := ended{one.State, round.Output, round.Error, round.Exit}, f.want
	for _, text := range f.says {
		if strings.Contains(got.Error, text) {
			want.Error = got.Error
		}
	}
	if want.Exit == "-" && got.Exit != "0" && got.Exit != "" {
		want.Exit = got.Exit
	}
	if want.Output == "*" {
		want.Output, want.Error = got.Output, got.Error
	}
	expect.Equal(t, got, want, "or", f.says)
}

// cutFrom checks the stored part of one output of a program that writes 1 GB to both outputs.
func cutFrom(t *testing.T, text string, size int64, file string) {
	t.Helper()
	const all = 1<<30 + 10_000_000 + int64(len("end\n"))
	note := fmt.Sprintf("[%d bytes are left out here; the whole output is on worker w1 in %s]\n", all-(1<<20), file)
	expect.Equal(t, size, all, "bytes")
	expect.True(t, strings.HasPrefix(text, "begin\n\x00"), len(text), "bytes", text)
	expect.True(t, strings.HasSuffix(text, "\x00end\n"), len(text), "bytes", text)
	expect.Compare(t, len(text), "<=", 1<<20+1+len(note))
	has(t, text, note)
	expect.Equal(t, expect.Result(os.Stat(file)).Value(t).Size(), all, "the file")
}

func failOn(rule tdf.FailOn) func(*task.Properties) {
	return func(d *task.Properties) { d.FailOn = rule }
}

func has(t testing.TB, text, part string) {
	t.Helper()
	expect.Contains(t, text, part, "has no")
}

func fileHas(t testing.TB, path, want string) {
	t.Helper()
	expect.Equal(t, string(expect.Result(os.ReadFile(path)).Value(t)), want, path)
}

func absent(t testing.TB, path string) {
	t.Helper()
	_, err := os.Lstat(path)
	expect.True(t, os.IsNotExist(err), path, err)
}

// dropFirstReplies drops the first reply to each of ten calls of scripts. A repeated call gets its reply.
func dropFirstReplies(proxy *redistest.Proxy) {
	seen := map[string]bool{}
	proxy.DropReplies(10, func(command []string) bool {
		call := strings.Join(command, "\n")
		first := redistest.Scripts(command) && !seen[call]
		seen[call] = true
		return first
	})
}

// The reply to each call is lost once. The task still runs only once.
func TestLostRepliesChangeNothing(t *testing.T) {
	w := newWorld(t)
	w.script("p", "#!/bin/sh\necho x >>runs; cat runs\n")
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	worker := w.workerOn(broker.WholeOf(w.connect(proxy.Addr)))
	id := w.open("", from(w.archive("run.sh", "#!/bin/sh\necho x >>runs; cat runs\n")), func(d *task.Properties) { d.Program = "q" })
	dropFirstReplies(proxy)
	w.runOnce(worker)
	r := w.task(id).Current()
	expect.Equal(t, r.Output, "x\n")
	expect.Equal(t, r.Exit, "0")
	if proxy.Dropped() < 4 { // the replies to the claim, two renewals and the result
		t.Errorf("only %d replies were dropped", proxy.Dropped())
	}
}
