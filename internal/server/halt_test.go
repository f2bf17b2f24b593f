package server

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
)

// A server pauses a group when enough of its tasks have failed, once, and forgets the halt when the group is complete.
func TestHalt(t *testing.T) {
	s := newSite(t)
	grouped := define()
	grouped.Group = "g"
	s.open(grouped, grouped, grouped, define())
	halt, group := task.Pausable{Group: "g", Failures: 2}, task.Pausable{Group: "g"}
	arm := func(what task.Pausable) {
		s.Helper()
		expect.MustEqual(s, expect.Result(s.store.Limits.Pause(s.Context(), "ann", what)).Value(s), 1)
	}
	is := func(paused bool, halts int) {
		s.Helper()
		s.round()
		now := expect.Result(s.store.Limits.Paused(s.Context())).Value(s)
		expect.MustEqual(s, len(now) > 0, paused)
		if paused {
			expect.MustEqual(s, now[0].Pausable, group)
			expect.Contains(s, now[0].By, "2 of its tasks have failed")
		}
		expect.Len(s, expect.Result(s.store.Limits.Halts(s.Context())).Value(s), halts)
	}
	fail := func(id int64) {
		s.Helper()
		c := s.claim(60)
		expect.MustEqual(s, c.Task.ID, id, "claimed task")
		s.execute(c, rules.Result{Exit: "1", Error: "boom"})
	}
	arm(halt)
	fail(1)
	is(false, 1)
	fail(2)
	is(true, 0)
	fail(4) // task 3 is paused
	expect.Result(s.store.Limits.Resume(s.Context(), "ann", group)).OK(s)
	is(false, 0)
	arm(task.Pausable{Group: "g", Failures: 9})
	arm(task.Pausable{Group: "empty", Failures: 9})
	s.execute(s.claim(60), rules.Result{Exit: "0"})
	is(false, 2)
	expect.NoError(s, s.store.Groups.CloseGroup(s.Context(), "g"))
	is(false, 1)
}
