package tdf

import (
	"fmt"
	"slices"
	"strings"
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

func TestInvalidUnique(t *testing.T) {
	for _, c := range []struct {
		property, key string
		until         UniqueUntil
	}{
		{"unique", strings.Repeat("k", MaxName+1), UntilFinished},
		{"unique", "a\nb", UntilFinished},
		{"unique", "a\x00", UntilFinished},
		{"unique", "\xff", UntilFinished},
		{"unique_until", "k", "never"},
		{"unique_until", "k", ""},
	} {
		d := Defaults("p", "http://h/run.sh", "")
		d.Unique, d.UniqueUntil = c.key, c.until
		err := d.Validate()
		expect.MustTrue(t, err != nil, c.key, c.until, err)
		expect.True(t, strings.HasPrefix(err.Error(), c.property+": "), c.key, c.until, err)
	}
	d := Defaults("p", "http://h/run.sh", "")
	expect.True(t, !slices.ContainsFunc(d.OpenFields(""), func(f Field) bool { return strings.HasPrefix(f.Name, "unique") }), "a task without a key has properties for it")
}
