package chaos

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/gobuild"
	"github.com/tdf-framework/tdf/internal/leaktest"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(managerVariable); file != "" {
		os.Exit(managerMain(file))
	}
	os.Exit(leaktest.M{M: m, End: func() { os.RemoveAll(bin) }}.Run())
}

// bin is the directory of the built commands; "" before the first call of build.
var bin string

var build = sync.OnceValue(func() (err error) {
	bin, err = os.MkdirTemp("", "tdf-chaos-*")
	if err != nil {
		return err
	}
	return gobuild.Build("../../cmd", bin, "./tdf", "./tdf-server", "./tdf-worker")
})

// built returns the path of a command. The first call builds all commands.
func built(t *testing.T, command string) string {
	t.Helper()
	expect.NoError(t, build())
	return filepath.Join(bin, command)
}

// A plan is how a world is broken.
type plan struct {
	faults  int
	between int  // how many tasks finish before each fault
	ahead   int  // how many tasks may be unfinished
	wide    bool // only faults that concern all of Redis
	setting
}

// A setting is a Redis, and what it may lose.
type setting struct {
	deploy    func(t testing.TB, fsync string) deployment
	failovers bool // a callback may be called with a task that a failover loses
	// mayLose reports whether a fault may lose tasks whose opening was acknowledged.
	mayLose func(fault string) bool
}

var onSingle = setting{deploy: func(t testing.TB, fsync string) deployment { return newSingle(t, fsync) }}

func onSentinel(replicas int, guarded bool) setting {
	return setting{
		deploy:    func(t testing.TB, fsync string) deployment { return newSentinel(t, fsync, replicas, guarded) },
		failovers: true,
		mayLose: func(fault string) bool {
			return replicas == 0 || replicas == 1 && fault == partReplica // the replica has confirmed what is lost
		},
	}
}

// Faults break a world again and again. Then it heals and finishes all tasks, and no invariant is violated. With
// TDF_HOURS, larger worlds follow each other for this time. The small world needs about 30 s of CPU time: while its ten faults
// come and heal, some 1,300 tasks run programs.
func TestChaos(t *testing.T) {
	text := os.Getenv("TDF_HOURS")
	if text == "" {
		w, _ := run(t, seed(t), plan{faults: 10, between: 20, ahead: 50, setting: onSingle})
		if !t.Failed() {
			w.findSpoiled()
		}
		return
	}
	s, between := onSingle, 120
	replicas, _ := strconv.Atoi(os.Getenv("TDF_REPLICAS")) // "" means none
	switch os.Getenv("TDF_REDIS") {
	case "sentinel":
		s, between = onSentinel(replicas, os.Getenv("TDF_GUARDED") != ""), 50
	case "cluster":
		s, between = onCluster(replicas), 50
	}
	hours := expect.Result(strconv.ParseFloat(text, 64)).Value(t)
	end := time.Now().Add(time.Duration(hours * float64(time.Hour)))
	all := newFigures()
	for seed := seed(t); time.Now().Before(end) && !t.Failed(); seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			_, f := run(t, seed, plan{faults: 24, between: between, ahead: 200, setting: s})
			all.add(f)
		})
		t.Logf("so far: %+v", all)
	}
}

// Sentinels promote replicas while a world runs. Acknowledged tasks may be lost only if no replica confirms writes, as with
// every second seed.
func TestFailover(t *testing.T) {
	seed := seed(t)
	run(t, seed, plan{faults: 3, between: 20, ahead: 50, wide: true, setting: onSentinel(int(seed%2), false)})
}

// The slot of the namespace moves while a world runs. Nothing is lost.
func TestMovedSlot(t *testing.T) {
	s := setting{
		deploy:  func(t testing.TB, fsync string) deployment { return moving{newCluster(t, fsync, 0)} },
		mayLose: func(string) bool { return false },
	}
	run(t, seed(t), plan{faults: 2, between: 20, ahead: 50, setting: s})
}

func seed(t *testing.T) uint64 {
	text := os.Getenv("TDF_SEED")
	if text == "" {
		return rand.Uint64N(1_000_000)
	}
	return expect.Result(strconv.ParseUint(text, 10, 64)).Value(t)
}

// figures are what happened in worlds.
type figures struct {
	Worlds, Tasks, Transitions, Losses, Faults, Acknowledged, UnknownOpens int

	Of   map[string]int // the numbers of faults
	Lost map[string]int // the acknowledged tasks that they lost
}

func newFigures() figures { return figures{Of: map[string]int{}, Lost: map[string]int{}} }

func (f *figures) add(g figures) {
	f.Worlds += g.Worlds
	f.Tasks += g.Tasks
	f.Transitions += g.Transitions
	f.Losses += g.Losses
	f.Faults += g.Faults
	f.Acknowledged += g.Acknowledged
	f.UnknownOpens += g.UnknownOpens
	for name, n := range g.Of {
		f.Of[name] += n
	}
	for name, n := range g.Lost {
		f.Lost[name] += n
	}
}

// run breaks a world, and checks it.
func run(t *testing.T, seed uint64, p plan) (*world, figures) {
	t.Helper()
	w := newWorld(t, seed, p)
	f, d := newFigures(), &deck{all: w.faults()}
	if p.wide {
		d.all = slices.DeleteFunc(d.all, func(f fault) bool { return !f.wide })
	}
	for f.Faults < p.faults {
		w.await(p.between)
		for _, name := range w.breakOnce(d) {
			f.Faults++
			f.Of[name]++
		}
	}
	w.await(p.between)
	h := w.drain()
	for _, text := range h.violations() {
		t.Error(text)
	}
	f.Worlds, f.Tasks, f.UnknownOpens = 1, len(h.tasks), w.ledger.unknown
	for _, b := range h.batches {
		f.Acknowledged += len(b.IDs)
		if b.Lost != "" {
			f.Lost[b.Lost] += len(b.IDs)
		}
	}
	for _, task := range h.tasks {
		f.Transitions += strings.Count(task.Task.Log, "\n") + 1
		f.Losses += task.Task.Losses
	}
	t.Logf("%+v", f)
	return w, f
}
