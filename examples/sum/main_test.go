package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/trial"
	"github.com/tdf-framework/tdf/worker"
)

func TestMain(m *testing.M) { os.Exit(leaktest.M{M: m}.Run()) }

// runIt runs the command in the test's process.
func runIt(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err testlog.Buffer
	status = run(t.Context(), args, &out, &err)
	return status, out.String(), err.String()
}

func TestEmbedded(t *testing.T) {
	status, stdout, stderr := runIt(t, "-5", "300", "9")
	expect.Equal(t, status, 0, stderr)
	expect.Equal(t, stdout, "sum of -5..300 = 45135\n")
}

// onRedis starts a server and workers with a real Redis, and returns the path of the manager's configuration file.
func onRedis(t *testing.T) (file string) {
	t.Helper()
	host, port, err := net.SplitHostPort(redistest.Shared(t))
	expect.NoError(t, err)
	namespace := redistest.Namespace(t)
	file = filepath.Join(t.TempDir(), "manager.cfg")
	text := fmt.Sprintf("[redis]\nhost=%s\nport=%s\n[tdf]\nnamespace=%s\n", host, port, namespace)
	expect.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	cfg := expect.Result(manager.LoadOptions(file)).Value(t)
	tdf := expect.Result(trial.StartOn(t.Context(), cfg.Redis, namespace, 2, os.Stderr)).Value(t)
	t.Cleanup(func() {
		expect.NoError(t, tdf.Stop())
	})
	return file
}

func TestOnRedis(t *testing.T) {
	file := onRedis(t)
	for _, c := range []struct{ from, to, bucket, want string }{
		{"1", "1000", "10", "500500"}, {"1", "500", "7", "125250"}, {"-9", "8", "2", "-9"},
	} {
		status, stdout, stderr := runIt(t, "-config", file, c.from, c.to, c.bucket)
		want := fmt.Sprintf("sum of %s..%s = %s\n", c.from, c.to, c.want)
		expect.Equal(t, status, 0, stderr)
		expect.Equal(t, stdout, want)
	}
}

func TestMissingProgram(t *testing.T) {
	file := onRedis(t)
	gone := filepath.Join(t.TempDir(), "run.sh")
	status, stdout, stderr := runIt(t, "-config", file, "-program", gone, "1", "100", "10")
	expect.Equal(t, status, 1)
	expect.Equal(t, stdout, "", "exit status", status)
	expect.Contains(t, stderr, gone, "exit status", status)
	expect.Contains(t, stderr, "-program", "exit status", status)
}

func TestFailedTask(t *testing.T) {
	file := onRedis(t)
	program := filepath.Join(t.TempDir(), "run.sh")
	expect.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho out of luck >&2\n"), 0o755))
	status, stdout, stderr := runIt(t, "-config", file, "-program", program, "1", "100", "10")
	expect.Equal(t, status, 1)
	expect.Equal(t, stdout, "", "exit status", status)
	expect.Contains(t, stderr, "failed: out of luck", "exit status", status)
}

func TestInvalidArguments(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"", "three numbers"},
		{"1 2", "three numbers"},
		{"1 2 3 4", `unknown option "1"`},
		{"1 x 3", `invalid number "x"`},
		{"1 2.5 3", "invalid number"},
		{"1 99999999999999999999 3", "whole number of 64 bits"},
		{"5 1 3", "no numbers from 5 to 1"},
		{"1 5 1", "bucket size 1"},
		{"1 5 5001", "bucket size 5001"},
		{"1 9223372036854775807 10", "64 bits"},
		{"-9223372036854775808 9223372036854775807 10", "64 bits"},
		{"1 3000000 2", "more than 1000000 tasks"},
		{"-unknown 1 2 3", "unknown"},
		{"-run a/b\tc 1 2 3", "-run"},
		{"-config no/such.cfg 1 2 3", "no/such.cfg"},
	} {
		args := strings.FieldsFunc(c.args, func(r rune) bool { return r == ' ' })
		status, stdout, stderr := runIt(t, args...)
		expect.Equal(t, status, 2, c.args, c.want)
		expect.Equal(t, stdout, "", c.args, "exit status", status, c.want)
		expect.Contains(t, stderr, c.want, c.args, "exit status", status)
	}
	status, _, stderr := runIt(t, "-h")
	expect.Equal(t, status, 0)
	expect.Contains(t, stderr, "usage: sum", "-h: exit status", status)
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, err testlog.Buffer
	status := run(ctx, []string{"1", "10", "2"}, &out, &err)
	expect.Equal(t, status, 1)
	expect.Contains(t, err.String(), "context canceled", "exit status", status)
}

func TestScript(t *testing.T) {
	for input, want := range map[string]string{
		"1..10": "55", "-3 5 -9": "-7", "-5..5": "0", "7": "7", "": "0", "5..1 2": "2",
		"9223372036854775806 1": "9223372036854775807", "9223372036854775807": "9223372036854775807",
	} {
		out, err := exec.Command("./run.sh", strings.Fields(input)...).Output()
		expect.Equal(t, strings.TrimSpace(string(out)), want, input)
		expect.NoError(t, err, input)
	}
	for _, input := range []string{"x", "1..", "..1", "1..x", "--1", "-", "1.5", "$(id)"} {
		out, err := exec.Command("./run.sh", input).Output()
		expect.Fails(t, err, "", input)
		expect.Len(t, out, 0, input)
	}
}

func TestConfigurationFiles(t *testing.T) {
	expect.Result(config.LoadTool("cfg/server.cfg", nil)).OK(t)
	expect.Result(worker.LoadConfig("cfg/worker.cfg")).OK(t)
	expect.Result(manager.LoadOptions("cfg/manager.cfg")).OK(t)
}

func TestPlan(t *testing.T) {
	const top = 1<<63 - 1
	expect.Equal(t, mustPlan(t, top, top, 2).numbers(0), fmt.Sprintf("%d..%d", int64(top), int64(top)), "the largest number")
	p := mustPlan(t, 1, 100, 7)
	want := []int64{15, 3, 1}
	expect.True(t, fmt.Sprint(p.widths) == fmt.Sprint(want), "widths", p.widths, "want", want)
	for level, width := range p.widths[:2] {
		opened := map[place]int{}
		for i := range width {
			if at := (place{level, i}); p.opens(at) {
				opened[p.parent(at)]++
			}
		}
		for i := range p.widths[level+1] {
			expect.Equal(t, opened[place{level + 1, i}], 1, "level", level+1, "index", i, "is opened … times")
		}
	}
	for _, at := range []place{{-1, 0}, {3, 0}, {0, 15}, {0, -1}} {
		expect.True(t, !p.holds(at), "the plan holds", at)
	}
}
