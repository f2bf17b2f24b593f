package worker

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/process"
)

// ended describes how a task and its last round ended, as users see it.
type ended struct {
	State               tdf.State
	Output, Error, Exit string
}

func endOf(one *task.Task) ended {
	r := one.Current()
	return ended{one.State, r.Output, r.Error, r.Exit}
}

// For each behaviour of a program, the test checks how its task ends under each fail_on.
func TestProgramsByRule(t *testing.T) {
	const succeeded, failed = tdf.Succeeded, tdf.Failed
	const silent3 = "run.sh ended with exit status 3 and printed nothing to stderr"
	const killed = "run.sh ended with signal: killed and printed nothing to stderr"
	for name, c := range map[string]struct {
		script            string
		want              ended
		stderr, exit, any tdf.State
	}{
		"stdout":     {"echo out", ended{Output: "out\n", Exit: "0"}, succeeded, succeeded, succeeded},
		"nothing":    {":", ended{Exit: "0"}, succeeded, succeeded, succeeded},
		"stderr":     {"echo err >&2", ended{Error: "err\n", Exit: "0"}, failed, succeeded, failed},
		"both":       {"echo o; echo e >&2; exit 255", ended{Output: "o\n", Error: "e\n", Exit: "255"}, failed, failed, failed},
		"binary":     {`printf '\000\377\n\r\001no end'`, ended{Output: "\x00\xff\n\r\x01no end", Exit: "0"}, succeeded, succeeded, succeeded},
		"killed":     {"echo o; kill -KILL $$", ended{Output: "o\n", Error: killed, Exit: "signal: killed"}, failed, failed, failed},
		"segfault":   {"echo e >&2; kill -SEGV $$", ended{Error: "e\n", Exit: "signal: segmentation fault"}, failed, failed, failed},
		"terminated": {"echo e >&2; kill $$", ended{Error: "e\n", Exit: "signal: terminated"}, failed, failed, failed},
		"exit 3":     {"exit 3", ended{Exit: "3"}, succeeded, failed, failed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.script("p", "#!/bin/sh\n"+c.script)
			worker := w.worker()
			for rule, state := range map[tdf.FailOn]tdf.State{tdf.FailOnStderr: c.stderr, tdf.FailOnExit: c.exit, tdf.FailOnAny: c.any} {
				id := w.open("", func(d *task.Properties) { d.FailOn = rule })
				w.runOnce(worker)
				want := c.want
				want.State = state
				if name == "exit 3" && state == failed {
					want.Error = silent3
				}
				expect.Equal(t, cmp.Diff(want, endOf(w.finished(id))), "", "fail_on", rule)
			}
		})
	}
}

// Some of these program directories cannot be run. The others are odd, but can be run.
func TestOddPrograms(t *testing.T) {
	const crlf = "run.sh has the line ends of Windows (CRLF), which become a part of its first line; convert it to LF"
	const blank = "run.sh has a blank or an empty line before its #!, which counts only at the very beginning; remove what is before it"
	elf := "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + "\x02\x00\xff\xff" + strings.Repeat("\x00", 100)
	for name, c := range map[string]struct {
		make func(w *world)
		want ended
	}{
		"no shebang":           {scriptOf("echo \"$0 $1\""), ended{Output: "./run.sh a b\n", Exit: "0"}},
		"CRLF":                 {scriptOf("#!/bin/sh\r\necho\r\n"), ended{Error: crlf}},
		"CRLF, option":         {scriptOf("#!/bin/sh -e\r\necho\r\n"), ended{Error: crlf}},
		"BOM":                  {scriptOf("\ufeff#!/bin/sh\necho"), ended{Error: "run.sh begins with a byte order mark (BOM), so the kernel does not see its #!; save it as UTF-8 without BOM"}},
		"UTF-16":               {scriptOf("\xff\xfe#\x00!\x00"), ended{Error: "run.sh is a text in UTF-16, which no interpreter reads; save it as UTF-8 without BOM"}},
		"empty first line":     {scriptOf("\n#!/usr/bin/env python3\n"), ended{Error: blank}},
		"blank first":          {scriptOf(" #!/bin/sh\n"), ended{Error: blank}},
		"CRLF and no shebang":  {scriptOf("true\r\nexit 0\r\n"), ended{Exit: "-"}},
		"interpreter missing":  {scriptOf("#! /no/such/perl -w\n"), ended{Error: `run.sh asks for the interpreter "/no/such/perl", which this worker does not have`}},
		"env, missing":         {scriptOf("#!/usr/bin/env python9\n"), ended{Error: `run.sh asks env for the interpreter "python9", which this worker does not have in its PATH (` + os.Getenv("PATH") + `)`}},
		"env, CRLF":            {scriptOf("#!/usr/bin/env sh\r\necho\r\n"), ended{Error: crlf}},
		"env":                  {scriptOf("#!/usr/bin/env sh\necho $1"), ended{Output: "a b\n", Exit: "0"}},
		"interpreter no file":  {scriptOf("#!/\n"), ended{Error: "run.sh may not be executed: permission denied; check its mode, its interpreter \"/\", whether its file system is mounted noexec, and whether all directories above it may be entered"}},
		"another machine's":    {scriptOf(elf), ended{Error: "run.sh is a binary that this machine cannot execute: it was built for another kind of machine"}},
		"zero bytes":           {scriptOf(""), ended{Error: "fetching rsync:/nowhere/run.sh: check: run.sh is empty (0 bytes)"}},
		"a directory":          {func(w *world) { must(w, os.MkdirAll(w.path("p", "run.sh"), 0o755)) }, ended{Error: "fetching rsync:/nowhere/run.sh: check: run.sh is a directory; it must be the program's script"}},
		"not executable":       {func(w *world) { scriptOf("#!/bin/sh\necho ok\n")(w); must(w, os.Chmod(w.path("p", "run.sh"), 0o644)) }, ended{Output: "ok\n", Exit: "0"}},
		"too deep, made there": {func(w *world) { must(w, os.MkdirAll(w.path("p", "p"), 0o755)); w.script("p/p", "") }, ended{Error: "fetching rsync:/nowhere/run.sh: rsync: open /nowhere/run.sh: no such file or directory"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.make(w)
			id := w.open("'a b'", func(d *task.Properties) { d.FailOn = tdf.FailOnExit })
			w.lastChance(id)
			w.runOnce(w.worker())
			got := endOf(w.finished(id))
			if c.want.Exit == "-" { // the shell wrote the error
				if !strings.Contains(got.Error, "not found") {
					expect.Contains(t, got.Error, "No such file")
				}
				expect.NotEqual(t, got.Exit, "")
				return
			}
			c.want.State = tdf.Failed
			if c.want.Exit == "0" {
				c.want.State = tdf.Succeeded
			}
			expect.Equal(t, cmp.Diff(c.want, got), "")
		})
	}
}

func scriptOf(text string) func(w *world) { return func(w *world) { w.script("p", text) } }

// If a script is removed just before its start, the error does not say that an interpreter is missing.
func TestRunScriptRemovedMeanwhile(t *testing.T) {
	w := newWorld(t)
	worker := w.worker()
	closeHost, err := worker.prepareHost()
	must(t, err)
	defer closeHost()
	_, err = worker.preparer.(*script).start(t.Context(), w.path("p"), process.Command{})
	expect.MustTrue(t, err != nil, err)
	expect.Equal(t, err.Error(), "run.sh does not exist: it was removed after the worker had checked it")
}

// If an invalid task was not opened through TDF, its round fails with the error that opening the task would have
// returned.
func TestInvalidTasks(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*task.Task)
		wrong  error
		want   string
	}{
		"invalid":    {func(*task.Task) {}, errors.New("source: nonsense"), "source: nonsense"},
		"input":      {func(t *task.Task) { t.Input = "'" }, nil, "a quote is not closed"},
		"bad source": {func(t *task.Task) { t.Source = "gopher://x/run.sh" }, nil, "gopher"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			one := &task.Task{Properties: task.Defaults("p", handMade, ""), ID: 1}
			c.change(one)
			worker := w.worker()
			closeHost := expect.Result(worker.prepareHost()).Value(t)
			defer closeHost()
			e := &execution{s: supervisorOf(worker), task: one, invalid: c.wrong, log: w.logger()}
			e.clock.Store(&reading{})
			e.run(t.Context())
			r, cause := e.result, e.cause
			expect.NoError(t, cause)
			expect.Equal(t, r.Exit, "")
			expect.True(t, r.Refused, r, cause)
			expect.Contains(t, r.Reason, c.want)
			expect.Result(os.Stat(w.path("p"))).FailsWith(t, fs.ErrNotExist, "the worker left ./p/ behind")
		})
	}
}
