package worker

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// A program finds what its task waited for in the file after (docs/programs.md, "after").
func TestProgramFindsDependencies(t *testing.T) {
	w := newWorld(t)
	w.script("p", `#!/bin/sh
case $1 in
good) printf '"a"\n\001\377'; echo '{"n": 1}' >$TDF_DIR/result.json ;;
bad) echo output; echo no >&2 ;;
cut) echo 12345678901 ;;
*) cat $TDF_DIR/after ;;
esac
`)
	w.cfg.MaxOutput = 10_000
	in := func(group string) func(*task.Properties) { return func(d *task.Properties) { d.Group = group } }
	w.open("good")
	w.open("bad", in("g"))
	w.open("good", in("g"))
	must(t, w.store.Groups.CloseGroup(t.Context(), "g"))
	for range 3 {
		w.runOnce(w.worker())
	}
	id := w.open("last", func(d *task.Properties) {
		d.After, d.AfterAny = &tdf.Dependencies{Tasks: []int64{1}}, &tdf.Dependencies{Tasks: []int64{1, 2}, Group: "g"}
	})
	w.finishedOthers(id)
	must(t, w.client().Del(t.Context(), w.cfg.Namespace+":task:1").Err()) // by other means, because TDF keeps the task
	w.runOnce(w.worker())
	want := []string{
		`{"id":1,"outcome":"removed","output":""}`,
		`{"id":2,"outcome":"failed","output":"output\n"}`,
		`{"id":2,"outcome":"failed","output":"output\n"}`,
		`{"id":3,"outcome":"succeeded","output":"\"a\"\n\u0001\ufffd","result":{"n":1}}`,
	}
	expect.Equal(t, w.finished(id).LastOutput(), strings.Join(want, "\n")+"\n")
}

// finishedOthers settles all tasks, until the given task no longer waits.
func (w *world) finishedOthers(id int64) {
	w.Helper()
	s := w.newServer()
	eventually(w, "the end of the dependencies", func() bool {
		expect.Result(s.RunOnce(w.Context())).OK(w)
		return w.task(id).PlacedIn == ""
	})
}

// The file after has a limit. Its last line says how many tasks are missing.
func TestManyDependencies(t *testing.T) {
	w := newWorld(t)
	text := strings.Repeat("x", 8<<20)
	var ids []int64
	for i := range 10 {
		ids = append(ids, w.open(fmt.Sprint(i)))
	}
	for range ids {
		c := expect.Result(w.store.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 60})).Value(t)
		m, err := rules.Execute(c.Claims[0].Task, c.Claims[0].ID, rules.Result{Output: text, Exit: "0"})
		must(t, err)
		_, err = w.store.Execute(t.Context(), "w", m)
		must(t, err)
	}
	id := w.open("all", func(d *task.Properties) { d.After = &tdf.Dependencies{Tasks: ids} })
	w.finishedOthers(id)
	e := &execution{s: supervisorOf(w.worker()), task: w.task(id)}
	path := filepath.Join(t.TempDir(), "after")
	f := expect.Result(os.Create(path)).Value(t)
	must(t, e.writeDependencies(t.Context(), f))
	must(t, f.Close())
	written := expect.Result(os.ReadFile(path)).Value(t)
	lines := strings.Split(strings.TrimSpace(string(written)), "\n")
	expect.MustTrue(t, len(written) <= broker.MaxAfter+100, len(written), len(lines), lines[len(lines)-1])
	expect.MustLen(t, lines, 8)
	expect.MustEqual(t, lines[7], `{"left_out":3}`)
	for _, line := range lines {
		expect.True(t, json.Valid([]byte(line)), line)
	}
}
