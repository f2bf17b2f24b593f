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
		if s.Finished() && (err != nil || reopen.Unique != "k") {
			t.Errorf("%s: reopened with the key %q, %v", s, reopen.Unique, err)
		}
		remove, err := unique(s).Remove()
		if s.Finished() && (err != nil || remove.Unique != "k") {
			t.Errorf("%s: removed with the key %q, %v", s, remove.Unique, err)
		}
	}
	m, err := unique(Running).TimeOut()
	if err != nil || m.Unique != "" {
		t.Errorf("timed out with the key %q, %v", m.Unique, err)
	}
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
		if err := d.Validate(); err == nil || !strings.HasPrefix(err.Error(), c.property+": ") {
			t.Errorf("%q, %q: %v", c.key, c.until, err)
		}
	}
	d := Defaults("p", "http://h/run.sh", "")
	if slices.ContainsFunc(d.OpenFields(""), func(f Field) bool { return strings.HasPrefix(f.Name, "unique") }) {
		t.Error("a task without a key has properties for it")
	}
}
