package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/manager/managertest"
	"github.com/tdf-framework/tdf/worker"
)

func TestMain(m *testing.M) { os.Exit(leaktest.M{M: m}.Run()) }

// write writes files with these texts, and returns their paths.
func write(t *testing.T, texts ...string) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	for i, text := range texts {
		path := filepath.Join(dir, fmt.Sprintf("it's text %d", i))
		expect.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		paths = append(paths, path)
	}
	return paths
}

func TestEmbedded(t *testing.T) {
	for want, texts := range map[string][]string{
		"cat=1\ndog=1\nend=2\nthe=4\n": {"the cat, the dog\n", "The End, the end.", ""},
		"one=2\n":                      {"one one"},
		"":                             {"", "12 -- 34\n"},
	} {
		var stdout, stderr testlog.Buffer
		status := run(t.Context(), write(t, texts...), &stdout, &stderr)
		expect.Equal(t, status, 0)
		expect.Equal(t, stdout.String(), want, "exit status", status)
	}
}

func TestInvalidArguments(t *testing.T) {
	file := write(t, "text")[0]
	for want, args := range map[string][]string{
		"got 0 files: want 1 to 250":          {},
		"got 251 files: want 1 to 250":        slices.Repeat([]string{file}, 251),
		"no such file":                        {file, file + "x"},
		"flag provided but not defined":       {"-x", file},
		"no/such.cfg":                         {"-config", "no/such.cfg", file},
		"usage: mapreduce [-config FILE.cfg ": {"-h"},
	} {
		var stdout, stderr testlog.Buffer
		status := run(t.Context(), args, &stdout, &stderr)
		help := args != nil && slices.Contains(args, "-h")
		expect.Equal(t, status == 0, help, status)
		expect.Equal(t, stdout.String(), "", status)
		expect.Contains(t, stderr.String(), want, status)
	}
}

func TestScript(t *testing.T) {
	file := write(t, "a b\nA_b\x00 \xff c")[0]
	for want, args := range map[string][]string{
		"a=2\nb=2\nc=1\n":    {"map", file},
		"a=1000002\nbb=10\n": {"reduce", "a=1", "bb=10", "a=1", "a=1000000"},
		"":                   {"reduce"},
	} {
		expect.Equal(t, string(expect.Result(exec.Command("./run.sh", args...).Output()).Value(t)), want, args)
	}
	for _, args := range [][]string{{}, {"map", "/no/such/file"}, {"map"}} {
		cmd := exec.Command("./run.sh", args...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		_ = cmd.Run()
		expect.True(t, stderr.Len() > 0, args, "no error")
	}
}

// counted returns a tester whose map tasks print the given counts, and whose reduce tasks print their input.
func counted(t *testing.T, counts string) (*managertest.Tester, *wordCount) {
	t.Helper()
	tm := managertest.New(t)
	tm.Program(programName, func(r managertest.Run) managertest.Result {
		output := counts
		if r.Args[0] == "reduce" {
			output = strings.Join(r.Args[1:], "\n")
		}
		return managertest.Result{Output: output, Duration: time.Duration(r.Task.ID*7%5) * time.Second}
	})
	return tm, &wordCount{m: tm.Manager, source: "https://example.org/run.sh", group: "g", files: slices.Repeat([]string{"f"}, 20)}
}

// Each count is in the result once, also if another manager starts again after the end.
func TestEachCountOnce(t *testing.T) {
	tm, w := counted(t, "a=1 b=2")
	for range 2 {
		counts, err := w.run(t.Context())
		n := len(strings.Fields(counts))
		expect.NoError(t, err, n, "counts in", counts)
		expect.Equal(t, n, 2*len(w.files), counts)
		w = &wordCount{m: tm.Another(), source: w.source, group: w.group, files: w.files}
	}
	left := len(tm.Tasks()) - len(tm.In(tdf.Archived))
	expect.True(t, left == 0, left, "tasks are not archived")
}

func TestTooManyWords(t *testing.T) {
	_, w := counted(t, strings.Repeat("word=1 ", 15_000))
	expect.Result(w.run(t.Context())).Fails(t, "count fewer files")
}

func TestFailedTask(t *testing.T) {
	tm, w := counted(t, "")
	tm.Program(programName, func(managertest.Run) managertest.Result { return managertest.Result{Error: "out of luck"} })
	expect.Result(w.run(context.Background())).Fails(t, "(map f) failed: out of luck")
}

func TestConfigurationFiles(t *testing.T) {
	expect.Result(config.LoadTool("cfg/server.cfg", nil)).OK(t)
	expect.Result(worker.LoadConfig("cfg/worker.cfg")).OK(t)
	expect.Result(manager.LoadOptions("cfg/manager.cfg")).OK(t)
}
