package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestMain makes the test program act as a child process if a measurement has started it. With the race detector, each
// process would sleep for a second when it ends. GORACE prevents that.
func TestMain(m *testing.M) {
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	if isRole() {
		exit(runRole(context.Background(), os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// All sides of all bars are measured, and each bar has its line.
func TestQuick(t *testing.T) {
	for _, name := range []string{"node", "npm", "parallel", "xargs"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%s is not installed: run scripts/setup node npm parallel (make test does it)", name)
		}
	}
	var out bytes.Buffer
	err := compare(t.Context(), []string{"-quick"}, &out)
	t.Log(out.String())
	if err != nil {
		t.Error(err)
	}
	for _, b := range allBars() {
		if !regexp.MustCompile(`(?m)^bar ` + b.name + ` .* want [<>]= .*: (met|short)$`).MatchString(out.String()) {
			t.Errorf("bar %s has no line with a verdict", b.name)
		}
		for _, side := range b.sides {
			row := regexp.MustCompile(`(?m)^` + b.name + ` +` + regexp.QuoteMeta(side.name) + ` +(\S+)`).FindStringSubmatch(out.String())
			if row == nil || row[1] == "-" {
				t.Errorf("bar %s, side %s: row of the table: %q", b.name, side.name, row)
			}
		}
	}
}

// If a side fails, it is not measured again, and the verdict of its bar is "not measured". The figures of the other
// sides and bars are still printed.
func TestASideFails(t *testing.T) {
	calls := map[string]int{}
	is := func(name string, value float64, errs ...error) side {
		return side{name: name, measure: func(*trial) (figure, error) {
			calls[name]++
			if calls[name] <= len(errs) {
				return figure{}, errs[calls[name]-1]
			}
			return figure{Value: value, CPU: 3}, nil
		}}
	}
	all := []*bar{
		{name: "broken", unit: "x/s", sides: []side{is("A", 8), is("B", 2, nil, errors.New("no luck"))}, wants: []want{atLeast(2, "× B", ratio("A", "B"))}},
		{name: "whole", unit: "x/s", sides: []side{is("C", 8), is("D", 2)}, wants: []want{atLeast(2, "× D", ratio("C", "D"))}},
	}
	var out bytes.Buffer
	err := measureAll(t.Context(), all, 3, quickSize, &out)
	if err == nil || !strings.Contains(err.Error(), "bar broken, B: no luck") || !strings.Contains(err.Error(), "1 of 2 bars were not measured") {
		t.Errorf("error %v", err)
	}
	for _, line := range []string{"bar broken - × B want >= 2.0: not measured", "bar whole 4.00 (4.00-4.00) × D want >= 2.0: met"} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("%q is missing in:\n%s", line, out.String())
		}
	}
	if !regexp.MustCompile(`(?m)^broken +A +8.00 .* 3.0`).MatchString(out.String()) || calls["A"] != 3 || calls["B"] != 2 {
		t.Errorf("calls %v, output:\n%s", calls, out.String())
	}
}

// Without a tool, the error says how to install it.
func TestMissingTool(t *testing.T) {
	if _, _, err := command("no-such-tool")(t.Context(), t.TempDir(), 1); err == nil || !strings.Contains(err.Error(), "run scripts/setup no-such-tool") {
		t.Errorf("error %v", err)
	}
}

// An incomplete or wrong task makes a measurement fail.
func TestReadBack(t *testing.T) {
	for _, test := range []struct {
		s       system
		opening job
		damage  []any
	}{
		{tdfSystem{}, job{Batch: 100}, []any{"hset", "bench:task:1", "input", "other"}},
		{tdfSystem{}, job{Batch: 100}, []any{"hset", "bench:task:100", "log", ""}},
		{asynqSystem{}, job{Callers: 4}, []any{"rpop", "asynq:{default}:pending"}},
	} {
		s := side{name: "damaged", measure: func(t *trial) (figure, error) {
			if _, err := measureOpening(test.s, test.opening)(t); err != nil {
				return figure{}, err
			}
			if err := t.rdb.Do(t.ctx, test.damage...).Err(); err != nil {
				return figure{}, err
			}
			return figure{}, test.s.checkOpened(t, t.tasks)
		}}
		if _, err := measureSide(t.Context(), s, quickSize); err == nil || !strings.Contains(err.Error(), "read back") {
			t.Errorf("after %q: error %v", test.damage, err)
		}
	}
}

func TestUnknownBar(t *testing.T) {
	err := compare(t.Context(), []string{"-bars", "memory,speed"}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), `unknown bar "speed": want some of process,`) {
		t.Errorf("error: %v", err)
	}
}
