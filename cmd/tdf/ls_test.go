package main

import (
	"testing"

	"github.com/tdf-framework/tdf"
)

// tdf ls marks a running task whose lease has ended.
func TestStateAfterTheLease(t *testing.T) {
	task, _ := tdf.ParseTask(1, tdf.Hash{"state": "running", "0:claim": "c", "lease_until": "2000000000"})
	if got := stateAt(task, 1999999999) + ", " + stateAt(task, 2000000000); got != "running, running (lease over)" {
		t.Errorf("got %q", got)
	}
}
