package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
)

// A fault is a program that does something wrong, with the expected effects on its task and its worker.
type fault struct {
	script string // if it does not begin with #!, the test puts lines before it that record its process
	set    func(w *world)
	task   func(d *tdf.Properties)
	during func(r *runningWorker) // called when two processes run; after that call, the test fires the worker's timers

	want  ended
	says  []string                                             // parts of the error, if another program writes its exact text
	log   string                                               // part of the worker's log
	check func(t *testing.T, r *runningWorker, task *tdf.Task) // more checks of the task and the worker
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
	"double fork": {
		script: "(setsid sh -c '(setsid sh -c \"echo \\$\\$ >>\\$PIDS; exec sleep 1000\" &) ; exit' &)\n" + bothNoted + "echo out\n",
		want:   ended{tdf.Succeeded, "out\n", "", "0"},
	},
	"daemon of another environment": {
		script: "env -i PIDS=$PIDS setsid sh -c 'echo $$ >>$PIDS; exec sleep 1000' &\n" + bothNoted + "echo out\n",
		want:   ended{tdf.Succeeded, "out\n", "", "0"},
	},
	"output left open in a grandchild": {
		script: "sh -c '(echo $$ >>$PIDS; exec sleep 1000) & wait' &\n" + bothNoted + "echo out\n",
		want:   ended{tdf.Succeeded, "out\n", "", "0"},
	},
	"SIGTERM ignored at the timeout": {
		script: deaf,
		task:   timeout,
		during: func(r *runningWorker) {
			r.timers.fireBetween(r, 900*time.Second, 1000*time.Second)
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
		check: func(t *testing.T, r *runningWorker, task *tdf.Task) {
			round := task.Current()
			cutFrom(t, round.Output, round.OutputBytes, r.path("p/results/w1-2-0.out"))
			cutFrom(t, round.Error, round.ErrorBytes, r.path("p/results/w1-2-0.err"))
		},
	},
	"binary, and no newline at the end": {
		script: `printf '\000\377\n\r\001no end'; printf '\200\000' >&2`,
		want:   ended{tdf.Failed, "\x00\xff\n\r\x01no end", "\x80\x00", "0"},
	},
	"runs on after it closed its outputs": {
		script: "echo out; exec >&- 2>&-; sleep 0.1; echo after >../after; exit 3",
		task:   failOn(tdf.FailOnExit),
		want:   ended{tdf.Failed, "out\n", "run.sh ended with exit status 3 and printed nothing to stderr", "3"},
		check:  func(t *testing.T, r *runningWorker, _ *tdf.Task) { fileHas(t, r.path("after"), "after\n") },
	},
	"stdin is read": {
		script: "cat; readlink /proc/self/fd/0; read line || echo nothing",
		want:   ended{tdf.Succeeded, "/dev/null\nnothing\n", "", "0"},
	},
	"output file removed": {
		script: "echo begin; rm results/*; echo end",
		set: func(w *world) {
			w.keepOutputs()
			w.cfg.MaxOutput = 8
		},
		want: ended{
			tdf.Succeeded,
			"begi\n[2 bytes are left out here; they are lost: on worker w1 a program removed or replaced $dir/p/results/w1-2-0.out]\nend\n", "", "0",
		},
	},
}

var ends = map[string]fault{
	"interpreter missing": {
		script: "#!/no/such/perl -w\n",
		want:   ended{State: tdf.Open}, // released, so that another host may run it
		log:    `released: this host cannot run it" task=2`,
		check: func(t *testing.T, _ *runningWorker, task *tdf.Task) {
			has(t, task.Log, `released: run.sh asks for the interpreter "/no/such/perl", which this worker does not have`)
		},
	},
	"exec format error": {
		script: "#!\x7fELF\x00",
		set:    func(w *world) { w.script("p", "\x7fELF\x02\x01\x01\x00") },
		want:   ended{State: tdf.Open},
		check: func(t *testing.T, _ *runningWorker, task *tdf.Task) {
			has(t, task.Log, "released: run.sh is a binary that this machine cannot execute: it was built for another kind of machine")
		},
	},
	"killed by KILL": {
		script: "echo out; kill -KILL $$",
		want:   ended{tdf.Failed, "out\n", "run.sh ended with signal: killed and printed nothing to stderr", "signal: killed"},
	},
	"killed by SEGV": {
		script: "kill -SEGV $$",
		want:   ended{tdf.Failed, "", "run.sh ended with signal: segmentation fault and printed nothing to stderr", "signal: segmentation fault"},
	},
	"killed by ABRT": {
		script: "echo err >&2; kill -ABRT $$",
		want:   ended{tdf.Failed, "", "err\n", "signal: aborted"},
	},
	"fails, with a good result": {
		script: `echo '{"a": 1}' >$TDF_DIR/result.json; exit 3`,
		task:   failOn(tdf.FailOnExit),
		want:   ended{tdf.Failed, "", "run.sh ended with exit status 3 and printed nothing to stderr", "3"},
		check: func(t *testing.T, _ *runningWorker, task *tdf.Task) {
			if got := task.Current().Result; got != "{\"a\": 1}\n" {
				t.Errorf("the result is %q", got)
			}
		},
	},
	"the program's directory removed": {
		script: "rm -r ../p; cd /; echo end",
		want:   ended{tdf.Succeeded, "end\n", "", "0"},
	},
	"the working directory removed": {
		script: "rm -r \"$(cd .. && pwd)\"; cd /; echo end",
		want:   ended{tdf.Succeeded, "end\n", "", "0"},
		check: func(t *testing.T, r *runningWorker, _ *tdf.Task) {
			task := r.over(r.open("", func(d *tdf.Properties) { d.Program = "other" }))
			if task.State != tdf.Open || task.Releases != 1 {
				t.Errorf("the next task is %s: %s", task.State, task.Log)
			}
			has(t, task.Log, "released: ")
			has(t, task.Log, "no such file or directory")
			r.script("next", good) // the cause of the failure is removed
		},
	},
}

var limits = map[string]fault{
	"out of memory": {
		script: "head -c 1000000000 /dev/zero | tail -n 1 >/dev/null\n",
		set:    func(w *world) { w.cfg.Programs.Memory = 128 << 20 },
		want:   ended{State: tdf.Failed, Exit: "-"},
		says:   []string{"memory exhausted", "all of its processes together used more than 134217728 bytes of memory (memory)"},
	},
	"file_size": {
		script: "exec head -c 2000000 /dev/zero",
		set:    func(w *world) { w.cfg.Programs.FileSize = 4096 },
		want: ended{
			tdf.Failed, strings.Repeat("\x00", 4096),
			"run.sh ended with signal: file size limit exceeded and printed nothing to stderr", "signal: file size limit exceeded",
		},
	},
	"cpu_seconds": {
		script: "while :; do :; done",
		set:    func(w *world) { w.cfg.Programs.CPUSeconds = 1 },
		want:   ended{State: tdf.Failed, Exit: "-"},
		says:   []string{"run.sh ended with signal: CPU time limit exceeded", "run.sh ended with signal: killed"},
	},
	"open_files": {
		script: "exec paste" + strings.Repeat(" /dev/null", 30),
		set:    func(w *world) { w.cfg.Programs.OpenFiles = 20 },
		want:   ended{State: tdf.Failed, Exit: "1"},
		says:   []string{"Too many open files"},
	},
}

func TestFaults(t *testing.T) {
	for kind, faults := range map[string]map[string]fault{
		"processes": daemons, "output": outputs, "end": ends, "limits": limits, "directory": directories,
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
	id := r.open("", func(d *tdf.Properties) {
		if f.task != nil {
			f.task(d)
		}
	})
	if f.during != nil {
		eventually(t, "two processes", func() bool {
			text, err := os.ReadFile(r.pids)
			must(t, err)
			return strings.Count(string(text), "\n") == 2
		})
		f.during(r)
	}
	task := r.over(id)
	f.compare(t, r, task)
	if f.check != nil {
		f.check(t, r, task)
	}
	r.next()
	w.logged(f.log) // the log must already contain the message
	if strings.Contains(w.log.String(), secret) {
		t.Error("a secret is in the log")
	}
	r.nothingRemains(r.before)
	r.stop()
}

func (f fault) compare(t *testing.T, r *runningWorker, task *tdf.Task) {
	t.Helper()
	round := task.Rounds.At(0)
	got, want := ended{task.State, round.Output, round.Error, round.Exit}, f.want
	want.Output = strings.ReplaceAll(want.Output, "$dir", r.cfg.Directory)
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
	if got != want {
		t.Errorf("got %.1000q, want %.1000q or %q", got, want, f.says)
	}
}

// cutFrom checks the stored part of one output of a program that writes 1 GB to both outputs.
func cutFrom(t *testing.T, text string, size int64, file string) {
	t.Helper()
	const all = 1<<30 + 10_000_000 + int64(len("end\n"))
	note := fmt.Sprintf("[%d bytes are left out here; the whole output is on worker w1 in %s]\n", all-(1<<20), file)
	if size != all {
		t.Errorf("%d bytes, want %d", size, all)
	}
	if !strings.HasPrefix(text, "begin\n\x00") || !strings.HasSuffix(text, "\x00end\n") || len(text) > 1<<20+1+len(note) {
		t.Errorf("%d bytes: %.100q", len(text), text)
	}
	has(t, text, note)
	if info, err := os.Stat(file); err != nil || info.Size() != all {
		t.Errorf("the file: %v, %v", info, err)
	}
}

func failOn(rule tdf.FailOn) func(*tdf.Properties) {
	return func(d *tdf.Properties) { d.FailOn = rule }
}

func has(t testing.TB, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%.2000q has no %q", text, part)
	}
}

func fileHas(t testing.TB, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s: %q, %v", path, got, err)
	}
}

func absent(t testing.TB, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("%s: %v", path, err)
	}
}

// A fork bomb runs as a user of its own with a limit on processes. The program also limits itself.
func TestForkBomb(t *testing.T) {
	const user = "daemon" // a user who has no other processes
	if os.Geteuid() != 0 {
		t.Skip("only root can run a fork bomb as a user of its own")
	}
	w := newWorld(t)
	for dir := w.cfg.Directory; dir != "/"; dir = filepath.Dir(dir) { // the user must be able to enter the directories
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o005 != 0o005 {
			must(t, os.Chmod(dir, 0o755))
		}
	}
	fault{
		script: `grep -q '^Max processes  *50 ' /proc/self/limits || grep -qx 50 "/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)/pids.max" || exit 9
trap '' TERM
bomb() { if [ "$1" -gt 0 ]; then bomb $(($1 - 1)) & bomb $(($1 - 1)) & wait; fi; sleep 1000; }
mkfifo $TDF_DIR/scratch/fifo
setsid sh -c 'echo $$ >>"$PIDS"; exec sleep 1000' &
bomb 8 &
read line <$TDF_DIR/scratch/fifo`,
		set: func(w *world) {
			w.keepOutputs()
			w.cfg.User, w.cfg.Programs.Processes = user, 50
			w.cfg.Require = []string{"user", "processes"}
		},
		task: timeout,
		during: func(r *runningWorker) {
			eventually(r, "no more processes", func() bool {
				text, _ := os.ReadFile(r.path("p/results/w1-2-0.err"))
				return strings.Contains(string(text), "fork")
			})
			r.timers.fireBetween(r, 900*time.Second, 1000*time.Second)
			r.timers.fire(r, r.cfg.KillGrace)
		},
		want: ended{State: tdf.TimedOut, Exit: "signal: killed"},
		says: []string{"fork"},
	}.happen(t, w)
}
