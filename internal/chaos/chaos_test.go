package chaos

import (
	"math/rand/v2"
	"os"
	"path/filepath"
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
	between int // how many tasks finish before each fault
	ahead   int // how many tasks may be unfinished
}

// Faults break a world again and again. Then it heals and finishes all tasks, and no invariant is violated. With
// TDF_HOURS, larger worlds follow each other for this time.
func TestChaos(t *testing.T) {
	seed := rand.Uint64N(1_000_000)
	if text := os.Getenv("TDF_SEED"); text != "" {
		seed = expect.Result(strconv.ParseUint(text, 10, 64)).Value(t)
	}
	text := os.Getenv("TDF_HOURS")
	if text == "" {
		w, _ := run(t, seed, plan{faults: 10, between: 20, ahead: 50})
		if !t.Failed() {
			w.findSpoiled()
		}
		return
	}
	hours := expect.Result(strconv.ParseFloat(text, 64)).Value(t)
	end := time.Now().Add(time.Duration(hours * float64(time.Hour)))
	var all figures
	for ; time.Now().Before(end) && !t.Failed(); seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			_, f := run(t, seed, plan{faults: 20, between: 300, ahead: 200})
			all.add(f)
		})
		t.Logf("so far: %+v", all)
	}
}

// figures are what happened in worlds.
type figures struct{ Worlds, Tasks, Transitions, Losses, Faults, UnknownOpens int }

func (f *figures) add(g figures) {
	f.Worlds += g.Worlds
	f.Tasks += g.Tasks
	f.Transitions += g.Transitions
	f.Losses += g.Losses
	f.Faults += g.Faults
	f.UnknownOpens += g.UnknownOpens
}

// run breaks a world, and checks it.
func run(t *testing.T, seed uint64, p plan) (*world, figures) {
	t.Helper()
	w := newWorld(t, seed, p.ahead)
	f, d := figures{Worlds: 1}, &deck{}
	for f.Faults < p.faults {
		w.await(p.between)
		f.Faults += w.breakOnce(d)
	}
	w.await(p.between)
	h := w.drain()
	for _, text := range h.violations() {
		t.Error(text)
	}
	f.Tasks, f.UnknownOpens = len(h.tasks), w.ledger.unknown
	for _, task := range h.tasks {
		f.Transitions += strings.Count(task.Task.Log, "\n") + 1
		f.Losses += task.Task.Losses
	}
	t.Logf("%+v", f)
	return w, f
}
