package worker

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
)

// The worker removes all that its rounds left, but no files of users with names like those of its own files.
func TestUpkeepRemovesWhatRoundsLeft(t *testing.T) {
	for name, set := range map[string]func(w *world){
		"output in files":                  (*world).keepOutputs,
		"output that Redis does not hold":  func(w *world) { w.cfg.MaxOutput = 2 },
		"output with another number":       func(w *world) { w.cfg.MaxOutput = 2; must(w, os.MkdirAll(w.path("p/results/w1-1-0.err"), 0o755)) },
		"output in directories for a task": func(w *world) { w.keepOutputs(); w.cfg.TaskOutputFilename = "out/$taskId/$round/stdout" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			set(w)
			w.script("p", "#!/bin/sh\necho out; echo err >&2; echo f >$TDF_DIR/files/f\n")
			byHand := w.path("hand/results/lr-0.01-3-5.out")
			must(t, os.MkdirAll(filepath.Dir(byHand), 0o755))
			must(t, os.WriteFile(byHand, []byte("by hand\n"), 0o644))
			before := ofRounds(t, w)
			w.open("")
			worker := w.worker()
			w.runOnce(worker)
			expect.MustTrue(t, len(ofRounds(t, w)) >= len(before)+3, "the round left only", ofRounds(t, w))
			w.age()
			removed := expect.Result((&supervisor{Worker: worker}).retention().Apply(t.Context())).Value(t)
			left := ofRounds(t, w)
			expect.Equal(t, removed.Files, 3)
			expect.Equal(t, len(left), len(before))
			fileHas(t, byHand, "by hand\n")
		})
	}
}

// ofRounds returns the files in the working directory, without the worker's own and the program's.
func ofRounds(t *testing.T, w *world) (found []string) {
	t.Helper()
	must(t, filepath.WalkDir(w.cfg.Directory, func(path string, d fs.DirEntry, err error) error {
		if d.Name() == ownDir {
			return fs.SkipDir
		}
		if path != w.path("p/run.sh") && (!d.IsDir() || filepath.Ext(path) != "") {
			found = append(found, path)
		}
		return err
	}))
	return found
}

// age makes all files in the working directory old.
func (w *world) age() {
	w.Helper()
	then := time.Now().Add(-2 * w.cfg.KeepFiles)
	must(w, filepath.WalkDir(w.cfg.Directory, func(path string, _ fs.DirEntry, err error) error {
		must(w, err)
		return os.Chtimes(path, then, then)
	}))
}
