// Package httpworker tests the example workers.
package httpworker

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/web"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/manager"
)

func TestMain(m *testing.M) { os.Exit(leaktest.M{M: m}.Run()) }

// start starts a server and the API. It returns a manager, and the environment of a worker.
func start(t *testing.T) (*manager.Manager, []string) {
	t.Helper()
	cfg := testspace.Config(t, redistest.Shared(t))
	m := testspace.Manager(t, cfg)
	webtest.RunServer(t, cfg)
	api := httptest.NewServer(web.New(m, web.Options{Log: slog.New(slog.DiscardHandler)}))
	t.Cleanup(api.Close)
	token := webtest.AddToken(t, m, access.Token{Name: "t", Role: access.Worker})
	env := []string{"TDF_API=" + api.URL, "TDF_TOKEN=" + token, "TDF_LEASE=3", "PYTHONPATH=../../python", "PYTHONDONTWRITEBYTECODE=1"}
	return m, append(os.Environ(), env...)
}

// A killed worker loses no task, and each task has exactly one result, whatever the worker did when it was killed. The workers have one name, so each
// one takes the name of the killed one.
func TestKilledWorkers(t *testing.T) {
	for _, c := range []struct {
		worker, program string
		want            func(i int) string
	}{
		{"./worker.py", "square", func(i int) string { return fmt.Sprintf(`{"square":%d}`, i*i) }},
		{"./worker.sh", "shout", func(i int) string { return fmt.Sprintf("TASK %d", i) }},
	} {
		t.Run(c.program, func(t *testing.T) {
			t.Parallel()
			m, env := start(t)
			const tasks, kills = 60, 3
			var all []manager.Definition
			for i := range tasks {
				input := strconv.Itoa(i)
				if c.program == "shout" {
					input = "task " + input
				}
				all = append(all, manager.Definition{Program: c.program, Input: input, MaxLosses: new(1000)})
			}
			expect.Result(m.Open(t.Context(), all...)).OK(t)
			for range kills {
				before := finished(t, m)
				stop := run(t, c.worker, env)
				expect.Eventually(t, "the worker goes on", func() bool { return finished(t, m) > before })
				more := finished(t, m) + rand.IntN(4)
				expect.Eventually(t, "the worker goes on", func() bool { n := finished(t, m); return n >= more || n == tasks })
				stop()
			}
			stop := run(t, c.worker, env)
			expect.Eventually(t, "all tasks are finished", func() bool { return finished(t, m) == tasks })
			stop()
			for task, err := range m.List(t.Context(), manager.Query{Read: manager.ReadOutput}) {
				expect.NoError(t, err)
				r := task.LastRun()
				want := c.want(int(task.ID) - 1)
				expect.Equal(t, task.State, tdf.Succeeded, task.ID)
				expect.Equal(t, strings.ReplaceAll(r.Result+r.Output, `": `, `":`), want, task.ID)
				// A killed worker loses the tasks that it has, and the server takes back those that were on their way to it.
				expect.True(t, task.Losses+task.Releases == task.Round, "task", task.ID, "has", task.Losses, "losses and", task.Releases, "releases in round", task.Round)
			}
		})
	}
}

// A script with nothing but curl opens 100 tasks, works on them, and reads the results as CSV. A second run opens no task again.
func TestCampaign(t *testing.T) {
	t.Parallel()
	m, env := start(t)
	token := webtest.AddToken(t, m, access.Token{Name: "o", Role: access.Operator})
	for range 2 {
		c := exec.CommandContext(t.Context(), "./campaign.sh", "numbers")
		c.Env, c.Stderr = append(env, "TDF_TOKEN="+token), t.Output()
		printed := expect.Result(c.Output()).Value(t)
		rows := expect.Result(csv.NewReader(bytes.NewReader(printed)).ReadAll()).Value(t)
		expect.Len(t, rows, 101)
		output, number := slices.Index(rows[0], "output"), slices.Index(rows[0], "number")
		for _, row := range rows[1:] {
			expect.Equal(t, row[output], "NUMBER "+row[number])
		}
	}
	expect.Equal(t, finished(t, m), 100)
}

// The worker in docs/http.md runs as it stands there.
func TestWorkerOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/http.md")
	expect.NoError(t, err)
	_, section, _ := strings.Cut(string(page), "\n## Workers\n")
	_, code, _ := strings.Cut(section, "```python\n")
	code, _, found := strings.Cut(code, "```")
	file := filepath.Join(t.TempDir(), "worker.py")
	expect.NoError(t, os.WriteFile(file, []byte("#!/usr/bin/env python3\n"+code), 0o700))
	m, env := start(t)
	_, err = m.Open(t.Context(), manager.Definition{Program: "square", Input: "12"}, manager.Definition{Program: "square", Input: "x"})
	expect.NoError(t, err)
	defer run(t, file, env)()
	expect.Eventually(t, "both tasks are finished", func() bool { return finished(t, m) == 2 })
	good, err := m.Get(t.Context(), 1)
	expect.True(t, found, good, err)
	expect.NoError(t, err)
	expect.Equal(t, good.LastRun().Result, `{"square": 144}`)
	bad := expect.Result(m.Get(t.Context(), 2)).Value(t)
	expect.Equal(t, bad.State, tdf.Failed)
	expect.Contains(t, bad.LastRun().Error, "invalid literal")
}

// run runs a worker, and starts it again if it ends, as it does if it was paused for longer than its lease. The function
// kill ends it at once, with the programs that it runs.
func run(t *testing.T, worker string, env []string) (kill func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			c := exec.CommandContext(ctx, worker, "w")
			c.Env, c.Stderr = env, t.Output()
			c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
			_ = c.Run() // it was killed
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// finished returns the number of finished tasks.
func finished(t *testing.T, m *manager.Manager) int {
	t.Helper()
	counts := expect.Result(m.Counts(t.Context())).Value(t)
	n := 0
	for state, of := range counts {
		if state.Finished() {
			n += int(of)
		}
	}
	return n
}
