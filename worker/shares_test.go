package worker

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
)

// offers makes the workers of a world offer resources.
func (w *world) offers(text string) {
	w.Helper()
	w.cfg.Resources = expect.Result(class.ParseResourceOffer(text)).Value(w)
}

func asking(request string) func(*task.Properties) {
	return func(d *task.Properties) { d.Resources = request }
}

// A program finds its share in its environment, and runs on its cores alone.
func TestProgramFindsItsShare(t *testing.T) {
	w := newWorld(t)
	w.offers("auto cpus=1 gpus=4 memory=8G licence=1")
	w.script("p", `#!/bin/sh
echo "$TDF_CPUS|$OMP_NUM_THREADS|$CUDA_VISIBLE_DEVICES|$TDF_MEMORY|$TDF_RESOURCES|$(nproc)"
grep Cpus_allowed_list /proc/self/status
`)
	id := w.open("", asking("cpus=1 gpus=2 memory=1G licence=0.5"))
	w.runOnce(w.worker())
	output := w.finished(id).Rounds.At(0).Output
	expect.Contains(t, output, "1|1|0,1|1073741824|cpus=1 gpus=2 licence=0.5 memory=1G|1\n")
	var here unix.CPUSet
	must(t, unix.SchedGetaffinity(0, &here))
	_, list, _ := strings.Cut(output, "Cpus_allowed_list:")
	var core int
	expect.Result(fmt.Sscan(list, &core)).OK(t)
	expect.True(t, here.IsSet(core), list)
	plain := w.open("")
	w.runOnce(w.worker())
	expect.Contains(t, w.finished(plain).Rounds.At(0).Output, "1|1|-1||cpus=1|1\n")
}

// Without resources, a worker changes neither the environment nor the cores of a program.
func TestNoSharesWithoutResources(t *testing.T) {
	w := newWorld(t)
	w.script("p", "#!/bin/sh\necho \"[$TDF_CPUS$OMP_NUM_THREADS$TDF_RESOURCES$CUDA_VISIBLE_DEVICES]$(nproc)\"\n")
	asks := w.open("", asking("cpus=1"))
	id := w.open("")
	w.runOnce(w.worker())
	var here unix.CPUSet
	must(t, unix.SchedGetaffinity(0, &here))
	expect.Equal(t, w.finished(id).Rounds.At(0).Output, fmt.Sprintf("[]%d\n", here.Count()))
	expect.Equal(t, w.task(asks).State, tdf.Open)
}

// What runs at once never exceeds what the worker offers, and all of it is free in the end.
func TestRunsWhatFits(t *testing.T) {
	w := newWorld(t)
	w.offers("cpus=4 licence=2")
	w.cfg.Concurrency = 1
	log := w.path("running")
	must(t, os.WriteFile(log, nil, 0o666))
	w.script("p", fmt.Sprintf("#!/bin/sh\necho + $TDF_RESOURCES >>%s\nsleep 0.02\necho - $TDF_RESOURCES >>%s\nexit $1\n", log, log))
	var ids []int64
	for i := range 24 {
		request := []string{"cpus=2", "cpus=0.5 licence=1", "", "cpus=4", "cpus=0 licence=0.5", "licence=3 or cpus=1"}[i%6]
		ids = append(ids, w.open(fmt.Sprint(i%2), asking(request), func(d *task.Properties) {
			d.FailOn = tdf.FailOnExit
		}))
	}
	worker := w.worker()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- worker.Run(ctx) }()
	for _, id := range ids {
		w.finished(id)
	}
	stop()
	must(t, <-ended)
	text := string(expect.Result(os.ReadFile(log)).Value(t))
	var cores, licences int64
	for line := range strings.Lines(text) {
		sign := int64(1)
		if line[0] == '-' {
			sign = -1
		}
		asked := expect.Result(class.ParseAmounts(strings.TrimSpace(line[1:]))).Value(t)
		cores, licences = cores+sign*asked.Of("cpus"), licences+sign*asked.Of("licence")
		expect.Compare(t, cores, "<=", 4*class.Scale)
		expect.Compare(t, licences, "<=", 2*class.Scale)
	}
	expect.Equal(t, cores+licences, 0)
	expect.Equal(t, worker.pool.Offered().String(), "cpus=4 licence=2")
}

// A worker that is kept for a task leaves the tasks after it to others, until the task fits.
func TestKeptWorkerWaitsForItsTask(t *testing.T) {
	w := newWorld(t)
	w.offers("cpus=2")
	release := make(chan struct{})
	var mu sync.Mutex
	var order []string
	worker := w.worker(Handle("p", func(_ context.Context, r *Round) error {
		mu.Lock()
		order = append(order, r.Input)
		mu.Unlock()
		if r.Input == "long" {
			<-release
		}
		return nil
	}))
	long := w.open("long", forHandler("p"), asking("cpus=1"))
	stop := w.start(worker)
	eventually(t, "the long round", func() bool { return w.task(long).State == tdf.Running })
	big := w.open("big", forHandler("p"), asking("cpus=2"))
	w.executed(w.open("small", forHandler("p"), asking("cpus=1"))) // its claim met the big task, which does not fit
	redistest.Age(t, w.client(), w.store.Keys.Key(""), 61)
	late := w.open("late", forHandler("p"), asking("cpus=1"))
	eventually(t, "the worker is kept", func() bool { return w.client().HLen(t.Context(), w.store.Keys.Kept()).Val() == 1 })
	expect.Equal(t, w.task(late).State, tdf.Open)
	close(release)
	w.executed(big)
	w.executed(late)
	stop()
	expect.Equal(t, order, []string{"long", "small", "big", "late"})
}

// A worker with a time limit claims no task that takes longer than it has. RunOnce has no limit.
func TestTimeLimitAndMinTime(t *testing.T) {
	w := newWorld(t)
	w.cfg.Grace, w.cfg.KillGrace, w.cfg.TimeLimit = 0, time.Hour, 200*time.Hour
	takes := func(d time.Duration) func(*task.Properties) {
		return func(p *task.Properties) { p.MinTime = task.For(d) }
	}
	long, short := w.open("", forHandler("p"), takes(200*time.Hour)), w.open("", forHandler("p"), takes(198*time.Hour))
	done := Handle("p", func(context.Context, *Round) error { return nil })
	stop := w.start(w.worker(done))
	w.executed(short)
	expect.Equal(t, w.task(long).State, tdf.Open)
	stop()
	w.runOnce(w.worker(done))
	expect.Equal(t, w.task(long).State, tdf.Succeeded)
}
