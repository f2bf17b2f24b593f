package task

import (
	"fmt"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A task holds its unique key until it has finished, or until it is archived (docs/lifecycle.md, "Unique tasks").
func TestHoldingStates(t *testing.T) {
	for until, want := range map[UniqueUntil]string{
		UntilFinished: "[open running executed]",
		UntilArchived: "[open running executed succeeded failed timed_out expired]",
	} {
		expect.Equal(t, fmt.Sprint(until.HoldingStates()), want, until)
	}
}

// Only a reopened task takes its key, and only a removed one gives it back.
func TestMovesWithUniqueKeys(t *testing.T) {
	unique := func(s State) *Task {
		task := taskIn(s)
		task.Unique = "k"
		return task
	}
	for _, s := range States {
		reopen, err := unique(s).Reopen()
		if s.Finished() {
			expect.NoError(t, err, s)
			expect.Equal(t, reopen.Unique, "k", s)
		}
		remove, err := unique(s).Remove()
		if s.Finished() {
			expect.NoError(t, err, s)
			expect.Equal(t, remove.Unique, "k", s)
		}
	}
	expect.Equal(t, expect.Result(unique(Running).TimeOut()).Value(t).Unique, "")
}
