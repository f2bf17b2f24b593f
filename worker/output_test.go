package worker

import (
	"os"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/worker/record"
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
	w.keepOutputs()
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

// Without names in the configuration, the worker keeps no file of a round whose output is in Redis.
func TestOutputFilesOfASlot(t *testing.T) {
	w := newWorld(t)
	w.script("p", "#!/bin/sh\necho out; echo err >&2\n")
	id := w.open("")
	w.runOnce(w.worker())
	if r := w.task(id).Current(); r.Output != "out\n" || r.Error != "err\n" {
		t.Errorf("got %q, %q", r.Output, r.Error)
	}
	absent(t, w.path("p/results"))
	absent(t, w.path(roundsDir))
}

// Each key decides only about its own file. A file is kept even if it is empty.
func TestOneOutputFileHasAName(t *testing.T) {
	w := newWorld(t)
	w.cfg.ErrorFilenameSet = true
	w.script("p", good)
	w.open("")
	w.runOnce(w.worker())
	fileHas(t, w.path("p/results/w1-1-0.err"), "")
	absent(t, w.path("p/results/w1-1-0.out"))
}

// If Redis does not get the output of a round, the worker keeps it.
func TestOutputOfADroppedRoundIsKept(t *testing.T) {
	w := newWorld(t)
	p := w.pipe()
	w.script("p", "#!/bin/sh\necho out; echo err >&2; echo >"+p.path+"; read line <"+p.path+"\n")
	id := w.open("")
	wait := w.background(t.Context(), w.worker())
	p.begun()
	must(t, w.client().HSet(t.Context(), w.store.Keys().Task(id), "0:claim", "another").Err())
	p.release()
	wait()
	fileHas(t, w.path("p/results/w1-1-0.out"), "out\n")
	fileHas(t, w.path("p/results/w1-1-0.err"), "err\n")
	w.logged("kept output that Redis does not hold")
}

// A process that still has the output of an earlier round open writes nothing into the output of a later round.
func TestWriterOfAnEarlierRound(t *testing.T) {
	for name, keep := range map[string]bool{"files of the slot": false, "files with names": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if keep {
				w.keepOutputs()
			}
			p := w.pipe()
			w.script("p", "#!/bin/sh\necho $1; if [ $1 = 1 ]; then echo >"+p.path+"; read line <"+p.path+"; fi\n")
			for _, input := range []string{"1", "2"} {
				w.open(input)
			}
			s, end := w.session(w.worker())
			_, _, err := s.claim(1, false)
			must(t, err)
			p.begun()
			file := w.path("p/results/w1-1-0.out")
			if !keep {
				file = s.rounds() + "/slot-1.out"
			}
			late, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
			must(t, err)
			defer late.Close()
			p.release()
			eventually(t, "the end of the first round", func() bool { return s.freeSlots() == 1 })
			_, _, err = s.claim(1, false)
			must(t, err)
			_, err = late.WriteString("late\n")
			must(t, err)
			end()
			for id, want := range map[int64]string{1: "1\n", 2: "2\n"} {
				if got := w.task(id).Current().Output; got != want {
					t.Errorf("the output of task %d is %q", id, got)
				}
			}
		})
	}
}

// A worker keeps the output of rounds that a killed worker of its name has not reported.
func TestOutputOfAKilledWorkerIsKept(t *testing.T) {
	w := newWorld(t)
	worker := w.worker()
	r, _, err := record.Open(record.Files{Slot: record.NewSlot(worker.rounds(), 1), Round: record.Round{Program: "p", Task: 17, Round: 3}})
	must(t, err)
	_, err = r.Stdout.WriteString("out")
	must(t, err)
	r.Close()
	worker.sweep(t.Context())
	fileHas(t, w.path("p/results/w1-17-3.out"), "out")
	absent(t, w.path("p/results/w1-17-3.err"))
	absent(t, worker.rounds())
	w.logged("kept output of an earlier worker of this name")
}
