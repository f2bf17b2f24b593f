package worker

import (
	"os"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
)

func TestOutputFilesStay(t *testing.T) {
	w := newWorld(t)
	w.cfg.MaxOutput = 4
	w.cfg.TaskErrorFilename = w.path("elsewhere", "$program", "$worker.$taskId.$round")
	w.script("p", "#!/bin/sh\nprintf 0123456789; printf err >&2\n")
	id := w.open("")
	w.runOnce(w.worker())
	for name, want := range map[string]string{w.path("p/results/w1-1-0.out"): "0123456789", w.path("elsewhere/p/w1.1.0"): "err"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	r := w.task(id).Current()
	if want := "01\n[6 bytes are left out here; all of it is on worker w1 in " + w.path("p/results/w1-1-0.out") + "]\n89"; r.Output != want || r.Error != "err" {
		t.Errorf("got %q, %q", r.Output, r.Error)
	}
}

func TestOutputFileThatCannotBeMade(t *testing.T) {
	w := newWorld(t)
	w.script("p", good)
	must(t, os.WriteFile(w.path("p", "results"), nil, 0o644))
	id := w.lastChance(w.open(""))
	w.runOnce(w.worker())
	got := w.finished(id)
	if got.State != tdf.Failed || !strings.Contains(got.LastError(), "task_output_filename): mkdir "+w.path("p", "results")+": not a directory") {
		t.Errorf("%s: %q", got.State, got.LastError())
	}
}

func TestMaxOutput(t *testing.T) {
	w := &Worker{}
	if got := w.maxOutputBytes(); got != maxOutput {
		t.Errorf("the default is %d bytes", got)
	}
	w.cfg.MaxOutput = 7
	if got := w.maxOutputBytes(); got != 7 {
		t.Errorf("7 gives %d bytes", got)
	}
}
