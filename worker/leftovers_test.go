package worker

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A worker removes what a killed worker left whose name never returns, and keeps its output. It does so only if the other
// worker is certainly gone.
func TestLeftoversOfOtherWorkers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world, dir string)
		gone   bool
	}{
		"killed":         {func(*world, string) {}, true},
		"alive in Redis": {func(w *world, _ string) { w.register("w2") }, false},
		"holds its lock": {func(w *world, dir string) { must(w, unix.Flock(w.openFile(dir, lockFile), unix.LOCK_EX|unix.LOCK_NB)) }, false},
		"has no lock":    {func(w *world, dir string) { must(w, os.Remove(filepath.Join(dir, lockFile))) }, false},
		"lock is a link": {func(w *world, dir string) {
			must(w, os.Rename(filepath.Join(dir, lockFile), filepath.Join(dir, "x")))
			must(w, os.Symlink("x", filepath.Join(dir, lockFile)))
		}, false},
		"other namespace": {func(w *world, dir string) { must(w, os.Rename(filepath.Dir(dir), filepath.Dir(dir)+"0")) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			dir := filepath.Join(w.worker().roundsOf("w2"), "p1")
			must(t, os.MkdirAll(filepath.Join(dir, "7/scratch"), 0o755))
			must(t, os.WriteFile(filepath.Join(dir, lockFile), nil, 0o600))
			leaveOutput(t, dir)
			c.change(w, dir)
			worker := w.worker()
			ended := ""
			worker.endLeftovers = func(_ context.Context, prefix string, _ *slog.Logger) int { ended = prefix; return 0 }
			_ = worker.removeLeftovers(t.Context())
			if !c.gone {
				absent(t, w.path("p/results"))
				expect.Equal(t, ended, "", "processes of … were ended")
				return
			}
			expect.Equal(t, ended, dir+"/", "processes of … were ended")
			absent(t, filepath.Dir(dir))
			fileHas(t, w.path("p/results/w2-17-3.out"), "of the killed worker")
			fileHas(t, w.path("p/results/w2-17-3.err"), "of the killed worker")
		})
	}
}

// A worker holds its lock as long as it runs, even if a program removes the file.
func TestWorkerLocksItsDirectory(t *testing.T) {
	w := newWorld(t)
	p := w.pipe()
	w.script("p", "#!/bin/sh\nrm -r $TDF_DIR/..; echo >"+p.path+"; read line <"+p.path+"\n")
	s, end := w.supervisor(w.worker())
	for range 2 {
		w.open("")
		_, err := s.claimNow(1)
		must(t, err)
		p.begun()
		p.release()
		eventually(t, "the end of the round", func() bool { return s.freeSlots() == 1 })
	}
	s.lockRounds()
	lock, err := lockOfGone(filepath.Join(s.rounds(), lockFile))
	expect.Equal(t, lock, nil)
	expect.NoError(t, err)
	end()
	absent(t, w.path(roundsDir))
}

func (w *world) register(name string) {
	w.Helper()
	info := presence.WorkerInfo{Name: name, Host: "elsewhere", Lease: 3600, State: presence.WorkerWorking}
	_, _, err := w.connect(redistest.Shared(w)).Presence.TakeName(w.Context(), info, presence.PriorOwner{})
	must(w, err)
}

func (w *world) openFile(dir, name string) int {
	w.Helper()
	f := expect.Result(os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)).Value(w)
	w.Cleanup(func() { f.Close() })
	return int(f.Fd())
}
