package worker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/record"
)

func TestOutputFilesStay(t *testing.T) {
	w := newWorld(t)
	w.cfg.MaxOutput = 4
	w.cfg.TaskErrorFilename = w.path("elsewhere", "$program", "$worker.$taskId.$round")
	w.script("p", "#!/bin/sh\nprintf 0123456789; printf err >&2\n")
	id := w.open("")
	w.runOnce(w.worker())
	for name, want := range map[string]string{w.path("p/results/w1-1-0.out"): "0123456789", w.path("elsewhere/p/w1.1.0"): "err"} {
		expect.Equal(t, string(expect.Result(os.ReadFile(name)).Value(t)), want, name)
	}
	r := w.task(id).Current()
	expect.Equal(t, r.Output, "01\n[6 bytes are left out here; the whole output is on worker w1 in "+w.path("p/results/w1-1-0.out")+"]\n89")
	expect.Equal(t, r.Error, "err")
}

func TestOutputFileThatCannotBeMade(t *testing.T) {
	w := newWorld(t)
	w.keepOutputs()
	w.script("p", good)
	must(t, os.WriteFile(w.path("p", "results"), nil, 0o644))
	id := w.open("")
	w.runOnce(w.worker())
	expect.Equal(t, w.finished(id).LastOutput(), "good\n")
	w.logged("output could not be kept")
	w.logged("mkdir " + w.path("p", "results") + ": not a directory")
}

// The worker keeps an output file only if the configuration names it, or if Redis does not hold all of the output. It
// then keeps even an empty file.
func TestOutputFilesWithoutNames(t *testing.T) {
	for _, named := range []bool{false, true} {
		w := newWorld(t)
		w.cfg.ErrorFilenameSet = named
		w.script("p", good)
		id := w.open("")
		w.runOnce(w.worker())
		expect.Equal(t, w.task(id).LastOutput(), "good\n")
		absent(t, w.path("p/results/w1-1-0.out"))
		absent(t, w.path(roundsDir))
		if named {
			fileHas(t, w.path("p/results/w1-1-0.err"), "")
		} else {
			absent(t, w.path("p/results"))
		}
	}
}

// If Redis does not get the output of a round, the worker keeps the output files.
func TestOutputOfADroppedRoundIsKept(t *testing.T) {
	w := newWorld(t)
	p := w.pipe()
	w.script("p", "#!/bin/sh\necho out; echo err >&2; echo >"+p.path+"; read line <"+p.path+"\n")
	id := w.open("")
	wait := w.background(t.Context(), w.worker())
	p.begun()
	must(t, w.client().HSet(t.Context(), w.store.Keys.Task(id), "0:claim", "another").Err())
	p.release()
	wait()
	fileHas(t, w.path("p/results/w1-1-0.out"), "out\n")
	fileHas(t, w.path("p/results/w1-1-0.err"), "err\n")
	w.logged("kept output that Redis does not hold")
}

// A process that still has the output of an earlier round open writes nothing into the output of a later round, even of
// the same task, if Redis has lost its data and gives out the id again.
func TestWriterOfAnEarlierRound(t *testing.T) {
	w := newWorld(t)
	worker := w.worker()
	s := newSupervisor(worker)
	of := record.RoundRef{Program: "p", Task: 1}
	first := expect.Result(s.spool.Open(of, false)).Value(t)
	second := expect.Result(s.spool.Open(of, false)).Value(t)
	expect.Result(first.Stdout.WriteString("late")).OK(t)
	expect.Result(second.Stdout.WriteString("new")).OK(t)
	expect.Equal(t, expect.Result(second.Read(10, "w1", nil)).Value(t).Output, "new")
	first.Release()
	second.Release()
}

// A worker keeps the output of rounds that a killed worker of its name has not reported.
func TestOutputOfAKilledWorkerIsKept(t *testing.T) {
	w := newWorld(t)
	worker := w.worker()
	spool := record.Spool{Dir: worker.rounds()}
	r := expect.Result(spool.Open(record.RoundRef{Program: "p", Task: 17, Round: 3}, false)).Value(t)
	expect.Result(r.Stdout.WriteString("out")).OK(t)
	r.Stdout.Close()
	r.Stderr.Close()
	worker.sweep(t.Context())
	fileHas(t, w.path("p/results/w1-17-3.out"), "out")
	absent(t, w.path("p/results/w1-17-3.err"))
	absent(t, worker.rounds())
	w.logged("kept output of a killed worker")
}

// leaveOutput writes the output files of a round, and leaves them, like a worker that is killed during the round.
func leaveOutput(t *testing.T, dir string) {
	t.Helper()
	spool := record.Spool{Dir: dir}
	r := expect.Result(spool.Open(record.RoundRef{Program: "p", Task: 17, Round: 3}, false)).Value(t)
	for _, f := range []*os.File{r.Stdout, r.Stderr} {
		expect.Result(f.WriteString("of the killed worker")).OK(t)
		f.Close()
	}
}

// If the name of one output file of a round is taken, both output files get the next free number, so that they have the
// same number in their names.
func TestBothFilesOfARoundHaveTheSameNumber(t *testing.T) {
	for taken, want := range map[string]string{"": "", "w1-17-3.out": "~2", "w1-17-3.err": "~2", "w1-17-3.scratch": "~2"} {
		w := newWorld(t)
		worker := w.worker()
		leaveOutput(t, worker.rounds())
		if taken != "" {
			must(t, os.MkdirAll(w.path("p/results"), 0o755))
			must(t, os.WriteFile(w.path("p/results", taken), nil, 0o644))
		}
		worker.sweep(t.Context())
		for _, ending := range []string{".out", ".err"} {
			fileHas(t, w.path("p/results/w1-17-3"+want+ending), "of the killed worker")
		}
	}
}

// If another process creates a file with the chosen name before the worker does, the round gets a new number.
func TestNumberOfARoundIsChosenAgain(t *testing.T) {
	w := newWorld(t)
	d := task.Defaults("p", handMade, "")
	e := &execution{s: supervisorOf(w.worker()), task: &task.Task{ID: 1, Properties: d}}
	must(t, e.chooseNumber())
	must(t, os.MkdirAll(w.path("p/results"), 0o755))
	must(t, os.WriteFile(w.path("p/results/w1-1-0.out"), nil, 0o644))
	for stream, want := range []string{"p/results/w1-1-0~2.out", "p/results/w1-1-0~2.err"} {
		path, err := e.keepAs(stream, func(dir *os.File, name string) error {
			f, err := os.OpenFile(filepath.Join(dir.Name(), name), os.O_CREATE|os.O_EXCL, 0o644)
			f.Close()
			return err
		})
		must(t, err)
		expect.Equal(t, path, w.path(want), "stream", stream, want)
	}
	expect.Equal(t, e.scratchPath(), w.path("p/results/w1-1-0~2.scratch"))
}

// forget empties the namespace, so that the next id is 1 again for a client that has opened no task yet.
func (w *world) forget() {
	w.Helper()
	keys := expect.Result(w.client().Keys(w.Context(), w.cfg.Namespace+":*").Result()).Value(w)
	must(w, w.client().Del(w.Context(), keys...).Err())
	w.store = w.connect(redistest.Shared(w))
}

// If Redis has lost its data and a new task gets the id of an earlier task, the worker keeps the earlier task's files.
func TestFilesOfAnIdGivenOutAgain(t *testing.T) {
	w := newWorld(t)
	w.keepOutputs()
	w.cfg.MaxOutput = 4
	w.script("p", "#!/bin/sh\necho output $1; echo error $1 >&2\n")
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
	}
	expect.Len(t, expect.Result(os.ReadDir(w.path("p/results"))).Value(t), 6)
}

// If the file name has no $taskId, all rounds share one file. The file contains the output of the last round.
func TestSharedOutputFile(t *testing.T) {
	w := newWorld(t)
	w.cfg.TaskOutputFilename, w.cfg.TaskErrorFilename = "$program/last.out", "$program/last.err"
	w.script("p", "#!/bin/sh\necho $1\n")
	for _, input := range []string{"one", "two"} {
		id := w.open(input)
		w.runOnce(w.worker())
		expect.Equal(t, w.finished(id).State, tdf.Succeeded)
	}
	fileHas(t, w.path("p/last.out"), "two\n")
	absent(t, w.path("p/last~2.out"))
}

// A configured name such as /dev/null does not lose its device.
func TestOutputFileThatIsADevice(t *testing.T) {
	w := newWorld(t)
	w.cfg.TaskOutputFilename = "null"
	if unix.Mknod(w.path("null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))) != nil {
		t.Skip("only root can make a device")
	}
	w.script("p", good)
	id := w.open("")
	w.runOnce(w.worker())
	expect.Equal(t, w.finished(id).LastOutput(), "good\n")
	expect.Equal(t, expect.Result(os.Lstat(w.path("null"))).Value(t).Mode().Type(), os.ModeDevice|os.ModeCharDevice)
}

// makeUnreadable makes reads of a file fail through the descriptor with which a round in this process writes the file.
func makeUnreadable(t *testing.T, path string) {
	t.Helper()
	blind := expect.Result(os.OpenFile(path, os.O_WRONLY, 0)).Value(t)
	defer blind.Close()
	entries := expect.Result(os.ReadDir("/proc/self/fd")).Value(t)
	found := false
	for _, e := range entries {
		fd, _ := strconv.Atoi(e.Name())
		if at, _ := os.Readlink("/proc/self/fd/" + e.Name()); at != path || fd == int(blind.Fd()) {
			continue
		}
		must(t, unix.Dup3(int(blind.Fd()), fd, unix.O_CLOEXEC))
		found = true
	}
	expect.MustTrue(t, found, "the worker does not have it open", path)
}

// If the worker cannot read the output of a round, Redis does not get the output. So the worker keeps the files.
func TestOutputThatCannotBeReadIsKept(t *testing.T) {
	w := newWorld(t)
	id := w.open("")
	out := strings.Repeat("o", record.InMemory+1)
	var worker *Worker
	worker = w.running(func(_ context.Context, r *Round) (Ended, error) {
		fmt.Fprint(r.Stdout, out)
		fmt.Fprint(r.Stderr, "err")
		makeUnreadable(t, worker.rounds()+"/1-0-p.out")
		return Ended{}, nil
	})
	w.runOnce(worker)
	got := w.finished(id)
	expect.Equal(t, got.State, tdf.Failed, "the task")
	has(t, got.LastError(), "reading stdout: ")
	fileHas(t, w.path("p/results/w1-1-0.out"), out)
	fileHas(t, w.path("p/results/w1-1-0.err"), "err")
}
