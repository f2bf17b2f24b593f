package worker

import (
	"os"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// forget empties the namespace, so that the next id is 1 again.
func (w *world) forget() {
	w.Helper()
	keys := expect.Result(w.client().Keys(w.Context(), w.cfg.Namespace+":*").Result()).Value(w)
	must(w, w.client().Del(w.Context(), keys...).Err())
}

// If Redis has lost its data and a new task gets the id of an earlier task, the worker keeps the earlier task's files.
func TestFilesOfAnIdGivenOutAgain(t *testing.T) {
	w := newWorld(t)
	w.keepOutputs()
	w.cfg.KeepScratch, w.cfg.MaxOutput = "failed", 4
	w.script("p", "#!/bin/sh\necho output $1; echo $1 >$TDF_DIR/files/f; echo $1 >$TDF_DIR/scratch/s; echo error $1 >&2\n")
	for _, input := range []string{"one", "two", "three"} {
		id := w.open(input)
		w.runOnce(w.worker())
		expect.Equal(t, id, 1, "the task has the id")
		if input == "two" {
			has(t, w.task(id).Current().Output, "the whole output is on worker w1 in "+w.path("p/results/w1-1-0~2.out"))
		}
		w.forget()
	}
	for name, input := range map[string]string{"w1-1-0": "one", "w1-1-0~2": "two", "w1-1-0~3": "three"} {
		name = w.path("p/results", name)
		fileHas(t, name+".out", "output "+input+"\n")
		fileHas(t, name+".err", "error "+input+"\n")
		fileHas(t, name+".files/f", input+"\n")
		fileHas(t, name+".scratch/s", input+"\n")
	}
	expect.Len(t, expect.Result(os.ReadDir(w.path("p/results"))).Value(t), 12)
}

// If the file name has no $taskId, all rounds share one file. The file contains the output of the last round.
func TestSharedOutputFile(t *testing.T) {
	w := newWorld(t)
	w.cfg.TaskOutputFilename, w.cfg.TaskErrorFilename = "$program/last.out", "$program/last.err"
	w.script("p", "#!/bin/sh\necho $1; echo $1 >$TDF_DIR/files/f\n")
	for _, input := range []string{"one", "two"} {
		id := w.open(input)
		w.runOnce(w.worker())
		expect.Equal(t, w.finished(id).State, tdf.Succeeded)
	}
	fileHas(t, w.path("p/last.out"), "two\n")
	fileHas(t, w.path("p/last.files/f"), "two\n")
	absent(t, w.path("p/last~2.out"))
}
