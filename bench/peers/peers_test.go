package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestMain lets the test program be the child processes of a measurement. With the race detector, each process would
// sleep for a second when it ends.
func TestMain(m *testing.M) {
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	if isRole() {
		exit(runRole(context.Background(), os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// The sides of TDF and asynq can always be measured. Without node, the bars that need BullMQ are not measured.
func TestQuick(t *testing.T) {
	var out bytes.Buffer
	err := command(t.Context(), []string{"-quick"}, &out)
	t.Logf("%s\nerror: %v", out.String(), err)
	needsBullMQ := map[string]bool{"process": true, "redis-cpu": true, "pickup": true}
	for _, b := range allBars() {
		line := regexp.MustCompile(`(?m)^bar ` + b.name + ` .* want [<>]= .*: (met|short|not measured)$`).FindStringSubmatch(out.String())
		if line == nil {
			t.Errorf("bar %s has no line", b.name)
			continue
		}
		if line[1] == "not measured" && !(needsBullMQ[b.name] && err != nil) {
			t.Errorf("bar %s was not measured", b.name)
		}
		for _, side := range b.sides {
			row := regexp.MustCompile(`(?m)^` + b.name + ` +` + regexp.QuoteMeta(side.name) + ` +(\S+)`).FindStringSubmatch(out.String())
			if row == nil || row[1] == "-" && !strings.HasPrefix(side.name, bullmqSide) {
				t.Errorf("bar %s, side %s: row of the table: %q", b.name, side.name, row)
			}
		}
	}
	if _, missing := exec.LookPath("node"); missing == nil && err != nil {
		t.Logf("some bars were not measured although node is installed: %v", err)
	}
}

// A task that is not as it should be makes a measurement fail.
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
			if _, err := opens(test.s, test.opening)(t); err != nil {
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
	err := command(t.Context(), []string{"-bars", "memory,speed"}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), `unknown bar "speed": want some of process,`) {
		t.Errorf("error: %v", err)
	}
}
