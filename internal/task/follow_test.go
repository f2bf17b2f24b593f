package task

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestFollow(t *testing.T) {
	of := Task{ID: 7, Properties: Defaults("p", "https://example.org/run.sh", "parent")}
	of.Group, of.Meta, of.StartAfter, of.Unique, of.UniqueUntil = "g", "m", 5, "k", UntilArchived
	of.InputEncoding = InputBase64
	of.After, of.MaxFails, of.Owner, of.Generations, of.EndBefore = &Dependencies{Tasks: []int64{1}}, 4, "lab", 3, 2e9
	want := Defaults("p", "https://example.org/run.sh", "child")
	want.Group, want.MaxFails, want.Owner, want.Generations, want.EndBefore, want.Timeout = "g", 9, "lab", 2, 2e9, 60
	got, err := of.Follow(&Definition{Input: "child", MaxFails: new(9), Timeout: time.Minute, Owner: "other", Generations: new(100)})
	expect.NoError(t, err)
	expect.Equal(t, got, want)
	if got, err := of.Follow(&Definition{Generations: new(0)}); err != nil || got.Generations != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	var invalid *PropertyError
	if _, err := of.Follow(&Definition{Queue: "a b"}); !errors.As(err, &invalid) {
		t.Errorf("error %v", err)
	}
	for name, d := range map[string]Definition{
		"another group":  {Group: "other/g"},
		"another key":    {Unique: "k"},
		"another queue":  {Queue: "q"},
		"other tasks":    {AfterAny: &Dependencies{Tasks: []int64{5}}},
		"other outcomes": {After: &Dependencies{Group: "others"}},
	} {
		if _, err := of.Follow(&d); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "lab") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	expect.Result(of.Follow(&Definition{Group: "lab/g", Unique: "lab/k", After: &Dependencies{Tasks: []int64{of.ID}, Places: []int{1}}})).OK(t)
	of.Group = "taskmaster/mail" // of all owners
	expect.Result(of.Follow(&Definition{Unique: "lab/k"})).OK(t)
	for _, after := range []string{of.Group, "taskmaster/a"} {
		expect.Result(of.Follow(&Definition{Group: "lab/g", AfterAny: &Dependencies{Group: after}})).Fails(t, "begin with lab/")
	}
	of.Generations = 0
	if _, err := of.Follow(&Definition{}); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "generations") {
		t.Errorf("error %v", err)
	}
}
