package cmd_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/slurmtest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A slurmWorld is a Slurm, a TDF whose workers are jobs, and a program that runs until its file is there.
type slurmWorld struct {
	*testing.T
	*slurmtest.Cluster
	store *redisstate.Store
	cfg   string // of the workers
}

const slurmScript = "../deploy/slurm/tdf-worker.sbatch"

func newSlurmWorld(t *testing.T) *slurmWorld {
	t.Helper()
	addr := redistest.Start(t).Addr // before Slurm, so that it outlives the workers
	w := &slurmWorld{T: t, Cluster: slurmtest.Start(t)}
	_, port, err := net.SplitHostPort(addr)
	must(t, err)
	must(t, os.Mkdir(w.Path("work"), 0o755))
	must(t, os.MkdirAll(w.Path("work/p"), 0o755))
	must(t, os.WriteFile(w.Path("work/p/run.sh"), []byte(
		"#!/bin/sh\necho \"$CUDA_VISIBLE_DEVICES\"\nuntil [ -e ../../go ]; do sleep 0.1; done\n"), 0o755))
	w.cfg = write(t, "[tdf]\nnamespace=N\n[redis]\nhost=127.0.0.1\nport=%s\n[worker]\nqueues=q\nlease=3\nenv=CUDA_VISIBLE_DEVICES\n",
		port)
	start(t, "tdf-server", "s", write(t, "[tdf]\nnamespace=N\n[redis]\nhost=127.0.0.1\nport=%s\n", port)).logs("msg=serving")
	w.store = connect(t, addr, "N")
	return w
}

// env is the environment of sbatch and tdf: jobs run the built worker, in a directory of the test.
func (w *slurmWorld) env() []string {
	w.Helper()
	return append(w.Env(), "TDF_WORKER="+built(w.T, "tdf-worker"), "TDF_DIRECTORY="+w.Path("work"))
}

// sbatch submits jobs that run workers, and returns the id.
func (w *slurmWorld) sbatch(args ...string) string {
	w.Helper()
	cmd := w.Command("sbatch", append([]string{"--parsable"}, args...)...)
	cmd.Env = w.env()
	out, err := cmd.CombinedOutput()
	expect.NoError(w, err, string(out))
	return strings.TrimSpace(string(out))
}

func (w *slurmWorld) script() string {
	w.Helper()
	return expect.Result(filepath.Abs(slurmScript)).Value(w)
}

func (w *slurmWorld) open(n int, queue string) (ids []int64) {
	w.Helper()
	for range n {
		d := task.Defaults("p", "rsync:/nowhere/run.sh", "")
		d.Queue, d.FailOn = queue, task.FailOnExit
		ids = append(ids, expect.Result(w.store.Open(w.Context(), "test", d)).Value(w)...)
	}
	return ids
}

func (w *slurmWorld) task(id int64) *task.Task {
	w.Helper()
	return expect.Result(w.store.ReadOne(w.Context(), id, redisstate.Want{Fields: redisstate.Whole})).Value(w).Task
}

func (w *slurmWorld) await(id int64, state task.State) *task.Task {
	w.Helper()
	eventually(w, fmt.Sprint("task ", id, " is ", state), func() bool { return w.task(id).State == state })
	return w.task(id)
}

// release lets the programs of all tasks end.
func (w *slurmWorld) release() {
	w.Helper()
	must(w, os.WriteFile(w.Path("go"), nil, 0o644))
}

func (w *slurmWorld) awaitNoJob() {
	w.Helper()
	eventually(w, "the end of all jobs", func() bool { return len(w.Jobs("%i")) == 0 })
}

// outputs returns what all jobs have printed.
func (w *slurmWorld) outputs() string {
	w.Helper()
	files := expect.Result(filepath.Glob(w.Path("jobs/*.out"))).Value(w)
	var text strings.Builder
	for _, file := range files {
		text.Write(expect.Result(os.ReadFile(file)).Value(w))
	}
	return text.String()
}

// An array runs workers whose names have the ids of their jobs, and each has a GPU of its own. A cancelled job releases
// its task, although Slurm sends SIGTERM to its program, too. Idle workers end.
func TestSlurmArray(t *testing.T) {
	w := newSlurmWorld(t)
	ids := w.open(2, "q")
	w.sbatch("--array=1-2", "--gres=gpu:1", "--time=10", w.script(), w.cfg, "--idle-timeout", "1")
	first, second := w.await(ids[0], task.Running).Current().Worker, w.await(ids[1], task.Running).Current().Worker
	jobs := w.Jobs("slurm-%A")
	slices.Sort(jobs)
	workers := []string{first, second}
	slices.Sort(workers)
	expect.Equal(t, workers, jobs)

	for _, job := range w.Jobs("slurm-%A=%i") {
		worker, name, _ := strings.Cut(job, "=") // scancel knows the jobs of an array as ARRAY_INDEX
		if worker == first {
			w.Cluster.Run("scancel", name)
		}
	}
	eventually(t, "the release", func() bool { return w.task(ids[0]).State == task.Open })
	one := w.task(ids[0])
	expect.Equal(t, one.Releases, 1)
	expect.Equal(t, one.Fails+one.Losses+one.Timeouts, 0, "what counts against the task")

	w.release()
	gpus := []string{strings.TrimSpace(w.await(ids[1], task.Succeeded).LastOutput()), strings.TrimSpace(w.await(ids[0], task.Succeeded).LastOutput())}
	for _, gpu := range gpus {
		expect.True(t, slices.Contains([]string{"0", "1"}, gpu), "CUDA_VISIBLE_DEVICES", gpu)
	}
	w.awaitNoJob()
	expect.Contains(t, w.outputs(), "no task for the idle timeout")
}

// The time limit of a worker is the rest of its job's time. The signal of the script reaches the worker.
func TestSlurmTimeLimit(t *testing.T) {
	w := newSlurmWorld(t)
	wrapper := w.Path("wrapper")
	must(t, os.WriteFile(wrapper, []byte("#!/bin/sh\necho \"arguments: $*\"\nexec "+built(t, "tdf-worker")+" \"$@\"\n"), 0o755))
	ids := w.open(1, "q")
	cmd := w.Command("sbatch", "--time=2", w.script(), w.cfg)
	cmd.Env = append(w.env(), "TDF_WORKER="+wrapper)
	out, err := cmd.CombinedOutput()
	expect.NoError(t, err, string(out))
	w.await(ids[0], task.Running)
	limit := regexp.MustCompile(`arguments: --idle-timeout 5m --time-limit (\d+) slurm-\d+ `).FindStringSubmatch(w.outputs())
	expect.MustLen(t, limit, 2, w.outputs())
	seconds := expect.Result(strconv.Atoi(limit[1])).Value(t)
	expect.Compare(t, seconds, ">", 27)
	expect.Compare(t, seconds, "<=", 120)
	w.Cluster.Run("scancel", "--batch", "--signal=TERM", w.Jobs("%A")[0])
	eventually(t, "the signal", func() bool { return strings.Contains(w.outputs(), "stopping: nothing more is claimed") })
	w.release()
	expect.Equal(t, w.await(ids[0], task.Succeeded).Releases, 0)
	w.awaitNoJob()
}

// scale starts tdf scale slurm.
func (w *slurmWorld) scale(args ...string) *process {
	w.Helper()
	cmd := exec.Command(built(w.T, "tdf"), append([]string{"--config", w.cfg, "scale", "slurm", "--worker-config", w.cfg}, args...)...)
	cmd.Dir = w.Path("jobs")
	return launch(w.T, cmd, w.env(), nil)
}

// tdf scale submits a job for each task, at most --max, and none for tasks that its workers may not claim. After a kill,
// it finds its jobs again. When no task waits, it submits nothing, and the workers end.
func TestScaleSlurm(t *testing.T) {
	w := newSlurmWorld(t)
	w.open(5, "other")
	p := w.scale("--max", "3", "--once", "--", "--time=10")
	p.exits(0, "0 tasks waiting; 0 jobs of at most 3")
	expect.Len(t, w.Jobs("%i"), 0)

	ids := w.open(5, "q")
	p = w.scale("--max", "3", "--dry-run", "--", "--time=10")
	p.exits(0, "5 tasks waiting; 0 jobs of at most 3; would submit 3 jobs")
	expect.Contains(t, p.stdout.String(), "sbatch --parsable --time=10 --job-name=tdf-N-q-")
	expect.Len(t, w.Jobs("%i"), 0)

	p = w.scale("--max", "3", "--interval", "1s", "--idle-timeout", "2s", "--", "--time=10")
	p.logs("submitted 3 jobs: ")
	p.signal(syscall.SIGKILL)
	<-p.ended
	p = w.scale("--max", "3", "--interval", "1s", "--idle-timeout", "2s", "--", "--time=10")
	p.logs("2 tasks waiting; 3 jobs of at most 3")
	expect.Len(t, w.Jobs("%i"), 3)
	w.release()
	for _, id := range ids {
		w.await(id, task.Succeeded)
	}
	p.logs("0 tasks waiting; 0 jobs of at most 3")
	p.signal(syscall.SIGINT)
	p.exits(0, "ended; its jobs continue")
	expect.Len(t, expect.Result(w.store.Presence.Workers(t.Context())).Value(t), 3, "workers")
	for _, worker := range expect.Result(w.store.Presence.Workers(t.Context())).Value(t) {
		expect.Equal(t, worker.State, presence.WorkerGone, worker.Name)
	}
}

// If the jobs end without a worker, or if sbatch fails, submitting pauses, and the command says why.
func TestScaleSlurmPauses(t *testing.T) {
	w := newSlurmWorld(t)
	w.open(9, "q")
	p := w.scale("--max", "2", "--interval", "1s", "--worker", "/no/such/worker", "--", "--time=10")
	p.logs("3 jobs in a row ended without a worker: the next job is submitted in 1s")
	p.logs("4 jobs in a row ended without a worker")
	expect.Contains(t, p.stderr.String(), "ended without a worker: FAILED, exit status 127:0, see "+w.Path("jobs")+"/slurm-")
	p.signal(syscall.SIGINT)
	p.exits(0, "ended; its jobs continue")
	w.awaitNoJob()

	p = w.scale("--max", "2", "--interval", "1s", "--", "--partition=none")
	p.logs("invalid partition specified: none")
	p.logs("the next attempt is in 2s")
	p.signal(syscall.SIGINT)
	p.exits(0, "ended; its jobs continue")
	p = w.scale("--once", "--", "--partition=none")
	p.exits(1, "submit a job: sbatch: exit status 1: ")
}
