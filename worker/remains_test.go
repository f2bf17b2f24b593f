package worker

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A runningWorker is a worker that a test runs in the background.
type runningWorker struct {
	*world
	worker *Worker
	stop   func()
	before traces
	pids   string // path of the file in which programs record their processes, $PIDS for programs
}

// traces are the children and descriptors of this process, which rounds might leave behind.
type traces struct {
	children    []int
	descriptors map[string]int // number of descriptors of each kind, without connections, since a pool keeps some open
}

// work starts a worker. At the end of the test, it stops the worker, and checks that nothing remains.
func (w *world) work(f fault) *runningWorker {
	w.Helper()
	r := &runningWorker{world: w, pids: filepath.Join(w.TempDir(), "pids")}
	must(w, os.WriteFile(r.pids, nil, 0o666))
	must(w, os.Chmod(r.pids, 0o666))
	w.Setenv("PIDS", r.pids)
	w.cfg.Env = append(w.cfg.Env, "PIDS")
	w.cfg.SleepAfterFailure = 0
	w.script("next", good)
	outside := tracesOf(w)
	r.worker = w.worker()
	r.worker.sole = true // as in tdf-worker
	if f.during != nil {
		w.timers.hold()
	}
	ctx, cancel := context.WithCancel(w.Context())
	wait := w.until(ctx, r.worker)
	eventually(w, "the start", func() bool { return w.workerState() == presence.WorkerWorking })
	r.next() // run a first task, because it opens files that a worker opens only once
	r.before = tracesOf(w)
	r.stop = func() {
		w.Helper()
		cancel()
		wait()
		r.nothingRemains(outside)
		_, err := os.Lstat(filepath.Join(w.cfg.Directory, roundsDir))
		expect.True(w, os.IsNotExist(err), "the directory of rounds remains", err)
	}
	return r
}

// over returns the task when its first round is over. Until then, it runs a server.
func (r *runningWorker) over(id int64) *task.Task {
	r.Helper()
	s := r.newServer()
	eventually(r, "the end of the round", func() bool {
		expect.Result(s.RunOnce(r.Context())).OK(r)
		one := r.task(id)
		return one.Round > 0 || one.State.Settled()
	})
	return r.task(id)
}

// next checks that the next task succeeds. This task is of another program.
func (r *runningWorker) next() {
	r.Helper()
	id := r.open("", func(d *task.Properties) { d.Program = "next" })
	got := r.over(id)
	expect.Equal(r, got.State, tdf.Succeeded)
	expect.Equal(r, got.LastOutput(), "good\n")
}

// nothingRemains waits until no process, descriptor or file of a round is left.
func (r *runningWorker) nothingRemains(before traces) {
	r.Helper()
	var left []string
	defer func() {
		expect.Len(r, left, 0, "left behind", strings.Join(left, "; "))
	}()
	eventually(r, "nothing is left", func() bool {
		left = r.remains(before)
		return len(left) == 0
	})
}

func (r *runningWorker) remains(before traces) (left []string) {
	noted := map[string]bool{}
	text := expect.Result(os.ReadFile(r.pids)).Value(r)
	for pid := range strings.FieldsSeq(string(text)) {
		noted[pid] = true
	}
	mark := dirVariable + r.worker.rounds() + "/"
	for _, pid := range processes(r) {
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		_, session := parentAndSession(pid)
		if noted[strconv.Itoa(pid)] || noted[strconv.Itoa(session)] || strings.Contains("\x00"+string(environ), "\x00"+mark) {
			command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			left = append(left, fmt.Sprintf("process %d: %q", pid, command))
		}
	}
	now := tracesOf(r)
	for _, pid := range now.children {
		if !slices.Contains(before.children, pid) {
			left = append(left, fmt.Sprintf("child %d", pid))
		}
	}
	for what, n := range now.descriptors {
		if n > before.descriptors[what] {
			left = append(left, fmt.Sprintf("%d descriptors of %s, %d before", n, what, before.descriptors[what]))
		}
	}
	return append(left, r.rounds()...)
}

// rounds returns the content of the rounds' directories. rounds skips an unused directory, which the worker keeps for
// the next round.
func (r *runningWorker) rounds() (found []string) {
	dirs := r.worker.rounds()
	must(r, filepath.WalkDir(dirs, func(path string, d fs.DirEntry, err error) error {
		of, _ := filepath.Rel(dirs, path)
		_, name, _ := strings.Cut(of, "/")
		if err != nil && !os.IsNotExist(err) || name != "" && !(d.IsDir() && name == "scratch") {
			found = append(found, path)
		}
		return nil
	}))
	return found
}

// anyRound matches the path of the directory that the worker keeps open for the next round.
var anyRound = regexp.MustCompile(`^/.*/` + regexp.QuoteMeta(roundsDir) + `/[^/]*/[^/]*/\d+`)

func tracesOf(t testing.TB) traces {
	t.Helper()
	found := traces{descriptors: map[string]int{}}
	for _, pid := range processes(t) {
		if parent, _ := parentAndSession(pid); parent == os.Getpid() {
			found.children = append(found.children, pid)
		}
	}
	entries := expect.Result(os.ReadDir("/proc/self/fd")).Value(t)
	for _, e := range entries {
		if what, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil { // an error means that it was the descriptor of ReadDir
			found.descriptors[anyRound.ReplaceAllString(what, "a round's directory")]++
		}
	}
	maps.DeleteFunc(found.descriptors, func(what string, _ int) bool {
		return strings.HasPrefix(what, "socket:") || strings.HasPrefix(what, "/proc")
	})
	return found
}

// processes returns all processes of the machine, including those that are not yet reaped.
func processes(t testing.TB) []int {
	t.Helper()
	entries := expect.Result(os.ReadDir("/proc")).Value(t)
	var all []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// parentAndSession returns the second and the fourth field after the process's name in /proc/PID/stat. The name may
// contain blanks.
func parentAndSession(pid int) (parent, session int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	words := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(words) < 4 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(words[1])
	session, _ = strconv.Atoi(words[3])
	return parent, session
}
