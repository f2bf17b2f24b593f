package worker

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// runWorker runs a worker until stop is called.
func (w *world) runWorker(worker *Worker) (stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	return func() {
		w.Helper()
		cancel()
		must(w, <-ended)
	}
}

// Rounds that run at the same time write the same file of their program's directory.
func TestRoundsDoNotShareADirectory(t *testing.T) {
	const rounds = 3
	script := `#!/bin/sh
echo "$1" >in.txt
echo "$1" >>"$BEGUN"
until [ "$(wc -l <"$BEGUN")" -ge ` + strconv.Itoa(rounds) + ` ]; do :; done
cat in.txt ../data lib/data
`
	for name, c := range map[string]struct {
		slots, workers int
		byHand         bool
	}{
		"slots":                  {3, 1, false},
		"slots, made by hand":    {3, 1, true},
		"workers":                {1, 3, false},
		"workers, made by hand":  {1, 3, true},
		"workers of two and one": {2, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Concurrency, w.cfg.Env = c.slots, []string{"BEGUN"}
			begun := filepath.Join(t.TempDir(), "begun")
			t.Setenv("BEGUN", begun)
			must(t, os.WriteFile(begun, nil, 0o644))
			must(t, os.WriteFile(w.path("data"), []byte("beside "), 0o644))
			source := handMade
			if c.byHand {
				w.script("p", script)
				must(t, os.MkdirAll(w.path("p", "lib"), 0o755))
				must(t, os.WriteFile(w.path("p", "lib", "data"), []byte("inside\n"), 0o644))
			} else {
				source = w.archive("run.sh", script, "lib/data", "inside\n")
			}
			for i := range rounds {
				w.open(strconv.Itoa(i), from(source))
			}
			for i := range c.workers {
				worker := w.worker()
				worker.name += strconv.Itoa(i)
				defer w.runWorker(worker)()
			}
			for i := range rounds {
				got := w.finished(int64(i) + 1)
				expect.Equal(t, got.LastOutput(), strconv.Itoa(i)+"\nbeside inside\n", got.LastError())
			}
		})
	}
}

// A round changes its program. The next round runs the program as it was fetched, or as the user made it.
func TestRoundThatChangesItsProgram(t *testing.T) {
	change := map[string]string{
		"an edit":            "sed -i s/v1/v2/ run.sh; echo v2 >lib/data",
		"within a file":      "printf v2 | dd of=lib/data conv=notrunc status=none",
		"a removal":          "rm lib/data",
		"a link":             "ln -sf /etc/passwd lib/data",
		"a directory":        "rm -r lib; mkdir -p lib/data",
		"no directory":       "rm -r lib",
		"the directory lost": `rm -rf "$PWD"`,
	}
	for name, command := range change {
		for _, slots := range []int{1, 2} {
			t.Run(name+", slots "+strconv.Itoa(slots), func(t *testing.T) {
				w := newWorld(t)
				w.cfg.Concurrency = slots
				source := w.archive("run.sh", "echo v1; cat lib/data\n"+command+"\n", "lib/data", "v1\n")
				var last string
				worker := w.worker()
				stop := w.runWorker(worker)
				for range 4 {
					got := w.finished(w.open("", from(source), func(d *task.Properties) { d.FailOn = tdf.FailOnExit }))
					expect.Equal(t, got.LastOutput(), "v1\nv1\n", got.LastError())
					last = got.Current().ProgramSHA256
				}
				stop()
				expect.Equal(t, last, w.task(1).Current().ProgramSHA256)
				if name != "the directory lost" { // the program is fetched or copied as if it were new
					w.logged("a round has changed a file of its program")
				}
			})
		}
	}
}

// A program may ask for the shared directory. A program that is too large to be copied must do so.
func TestSharedDirectory(t *testing.T) {
	for name, c := range map[string]struct {
		files      []string
		most       int64
		want, fail string
	}{
		"no file":             {nil, 1 << 30, "/p~2\n", ""},
		"the file":            {[]string{sharedFile, ""}, 1 << 30, "/p\n", ""},
		"too large":           {nil, 5, "", "add the file .tdfshared to it"},
		"too large, the file": {[]string{sharedFile, ""}, 5, "/p\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Concurrency, w.cfg.MaxCopyBytes = 2, c.most
			id := w.lastChance(w.open("", from(w.archive(append(c.files, "run.sh", "pwd -P\n")...))))
			w.runOnce(w.worker())
			got := w.finished(id)
			dir := expect.Result(filepath.EvalSymlinks(w.path())).Value(t)
			expect.Equal(t, strings.TrimPrefix(got.LastOutput(), dir), c.want)
			expect.Contains(t, got.LastError(), c.fail)
		})
	}
}
