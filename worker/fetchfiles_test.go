package worker

import (
	"context"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/bundle"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

func fetching(patterns ...string) func(*task.Properties) {
	return func(p *task.Properties) { p.Fetch = patterns }
}

// broughtBack returns the names and contents of the files that a task has brought back.
func (w *world) broughtBack(id int64) string {
	w.Helper()
	texts := redisstate.SameTexts(redisstate.TextsOf{Texts: task.TextFiles})
	stored := expect.Result(w.store.ReadOne(context.Background(), id, redisstate.Want{Fields: redisstate.Facts, Texts: texts})).Value(w)
	var all []string
	err := bundle.Read(stored.Task.Rounds.At(0).Packed, stored.Task.Fetch, bundle.MaxBytes, func(name string, _ fs.FileMode, from io.Reader) error {
		text, err := io.ReadAll(from)
		all = append(all, name+"="+string(text))
		return err
	})
	expect.NoError(w, err)
	return strings.Join(all, " ")
}

// A command of exec: brings back files of its own directory.
func TestFetchFilesOfACommand(t *testing.T) {
	w := newWorld(t)
	id := w.open("sh -c 'mkdir out; printf 1 >out/a; printf 2 >out/b; printf 3 >c'", in(""), fetching("out/*"))
	w.runOnce(w.worker())
	expect.Equal(t, w.finished(id).State, tdf.Succeeded)
	expect.Equal(t, w.task(id).Current().Files, task.Files{Count: 2, Bytes: 2})
	expect.Equal(t, w.task(id).Current().Packed, "", "a whole task has the files")
	expect.Equal(t, w.broughtBack(id), "out/a=1 out/b=2")
}

// A program runs in a copy that is new for each round, so files of other rounds, and its own, do not match.
func TestFetchFilesOfAProgram(t *testing.T) {
	for _, slots := range []int{1, 2} {
		w := newWorld(t)
		w.cfg.Concurrency = slots
		must(t, os.MkdirAll(w.path("p"), 0o755))
		must(t, os.WriteFile(w.path("p/data"), []byte("data"), 0o644))
		must(t, os.WriteFile(w.path("p/changed"), []byte("before"), 0o644))
		w.script("p", "#!/bin/sh\ncat data >/dev/null; ls | tr '\\n' ' '; printf $1 >$1; if [ $1 = b ]; then printf x >>changed; fi")
		worker := w.worker()
		first := w.open("a", fetching("*"))
		w.runOnce(worker)
		second := w.open("b", fetching("*"))
		w.runOnce(worker)
		expect.Equal(t, w.task(first).LastOutput(), "changed data run.sh ")
		expect.Equal(t, w.task(second).LastOutput(), "changed data run.sh ")
		expect.Equal(t, w.broughtBack(first), "a=a")
		expect.Equal(t, w.broughtBack(second), "b=b changed=beforex")
	}
}

func TestFetchFails(t *testing.T) {
	w := newWorld(t)
	for input, want := range map[string]string{
		"true": "fetch: no file matches out/*; a pattern is relative to the directory in which the program begins (run.sh ended with 0)",
		"sh -c 'mkdir out; ln -s /etc/passwd out/a'": "except out/a, which is no regular file",
		"sh -c 'ln -s /etc out'":                     "fetch: no file matches out/*",
		"sh -c 'mkdir out; echo >out/a; exit 3'":     "run.sh ended with exit status 3",
	} {
		id := w.open(input, in(""), fetching("out/*"), func(p *task.Properties) { p.FailOn = tdf.FailOnExit })
		w.runOnce(w.worker())
		one := w.finished(id)
		expect.Equal(t, one.State, tdf.Failed, input)
		expect.Contains(t, one.Current().Error, want, input)
		expect.Equal(t, w.broughtBackOrNone(id), "", input)
	}
}

// Files that exceed the limit stay on the worker, because the work is done.
func TestFetchTooMuch(t *testing.T) {
	w := newWorld(t)
	w.cfg.MaxFetch = 5
	id := w.open("sh -c 'mkdir out; printf 123456 >out/a'", in(""), fetching("out/*"))
	w.runOnce(w.worker())
	expect.Equal(t, w.finished(id).State, tdf.Succeeded)
	files := w.task(id).Current().Files
	said, dir, _ := strings.Cut(files.Kept, "; they are on worker w1 in ")
	expect.Equal(t, said, "the files that match (1) have 6 bytes, more than max_fetch (5); keep blobs (docs/blobs.md), fetch fewer files, or raise [worker] max_fetch where the task runs")
	expect.Equal(t, files, task.Files{Kept: files.Kept})
	expect.Equal(t, string(expect.Result(os.ReadFile(dir+"/out/a")).Value(t)), "123456")
}

func (w *world) broughtBackOrNone(id int64) string {
	if w.task(id).Current().Files.Count == 0 {
		return ""
	}
	return w.broughtBack(id)
}
