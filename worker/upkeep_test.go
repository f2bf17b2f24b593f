package worker

import (
	"os"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
)

// The worker removes fetched programs that nobody uses any more. It keeps those that it runs, programs made by hand, and
// the output of rounds.
func TestUpkeepRemovesUnusedPrograms(t *testing.T) {
	w := newWorld(t)
	w.keepOutputs()
	w.open("", from(w.archive("run.sh", good)))
	worker := w.worker()
	s, end := w.supervisor(worker)
	defer end()
	w.runOnce(worker)
	w.script("byhand", good)
	const record = ".tdf-program.json"
	then := time.Now().Add(-2 * w.cfg.KeepPrograms)
	must(t, os.Chtimes(w.path("p", record), then, then))
	running := &execution{s: s, task: w.task(1)}
	s.held[running] = true
	s.removePrograms(t.Context())
	expect.True(t, time.Since(expect.Result(os.Stat(w.path("p", record))).Value(t).ModTime()) < time.Hour)
	delete(s.held, running)
	must(t, os.Chtimes(w.path("p", record), then, then))
	s.removePrograms(t.Context())
	absent(t, w.path("p", record))
	absent(t, w.path("p", "run.sh"))
	expect.Result(os.Stat(w.path("byhand", "run.sh"))).OK(t)
	fileHas(t, w.path("p/results/w1-1-0.out"), "good\n")
}
