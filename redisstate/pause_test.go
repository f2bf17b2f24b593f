package redisstate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// After Pause has returned, no claim takes a task of the queue, the group or the namespace. Running tasks go on. After
// Resume, the tasks come in their old order.
func TestPause(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]task.Pausable{
		"a queue": {Queue: "a"}, "the default queue": {Queue: class.DefaultQueue}, "a group": {Group: "g"}, "the namespace": task.Everything, "another queue": {Queue: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			grouped := func(d task.Properties) task.Properties { d.Group = "g"; return d }
			ids := mustOpen(t, s, define("x"), placed("a", 1), grouped(placed("a", 0)), grouped(define("x")), placed("a", -1), define("x"))
			offer := offerOf("a", "default")
			running := claimFor(t, s, 1, offerOf("a")).Claims[0] // the task with priority 1
			n, err := s.Limits.Pause(t.Context(), "ann", pause, pause)
			expect.MustTrue(t, n != 0, n, err)
			expect.NoError(t, err, n)
			got := map[int64]bool{}
			for range 5 {
				for _, id := range claimedIDs(claimFor(t, s, 10, offer)) {
					got[id] = true
				}
			}
			for _, id := range ids {
				x := read(t, s, id)
				_, held := (task.Paused{pause}).Holds(&x.Properties)
				if id != running.Task.ID {
					expect.Equal(t, held, x.State == task.Open, "task", id)
				}
			}
			expect.NoError(t, expect.Result(s.Execute(t.Context(), "w", execution(t, running))).Value(t)[0].Err)
			paused := expect.Result(s.Limits.Paused(t.Context())).Value(t)
			expect.MustLen(t, paused, 1)
			expect.MustEqual(t, paused[0].Pausable, pause)
			expect.MustEqual(t, paused[0].By, "ann")
			expect.NotEqual(t, paused[0].Since, 0)
			expect.MustEqual(t, expect.Result(s.Limits.Resume(t.Context(), "ann", pause)).Value(t), 1)
			returnWaiting(t, s)
			rest := claimedIDs(claimFor(t, s, 10, offer))
			var want []int64
			for _, i := range []int{2, 4, 0, 3, 5} {
				if !got[ids[i]] {
					want = append(want, ids[i])
				}
			}
			expect.Equal(t, rest, want, "after the pause … were claimed")
			mustBeSound(t, s)
		})
	}
}

func execution(t *testing.T, c redisstate.Claim) rules.Move {
	return expect.Result(rules.Execute(c.Task, c.ID, rules.Result{Exit: "0"})).Value(t)
}

// A claim passes over a million tasks of a paused group at bounded cost per claim: here, over 3,000 tasks.
func TestPausedGroupIsPassed(t *testing.T) {
	s := newStore(t)
	var all []task.Properties
	for range 3000 {
		d := define("x")
		d.Group = "g"
		all = append(all, d)
	}
	mustOpen(t, s, all...)
	other := mustOpen(t, s, define("other"))[0]
	expect.Result(s.Limits.Pause(t.Context(), "ann", task.Pausable{Group: "g"})).OK(t)
	for range 500 {
		if got := claimedIDs(claimFor(t, s, 2, class.Offer{Programs: true})); len(got) > 0 {
			expect.Equal(t, got, []int64{other}, "claimed")
			return
		}
	}
	t.Error("no claim came to the other task")
}

// A namespace that is resumed has no key of the pause left, and costs no more than before.
func TestResumeLeavesNothing(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("x"))
	before := dump(t, s)
	for range 2 {
		expect.Result(s.Limits.Pause(t.Context(), "ann", task.Everything, task.Pausable{Group: "g"})).OK(t)
	}
	n, err := s.Limits.Resume(t.Context(), "ann", task.Everything, task.Pausable{Group: "g"}, task.Pausable{Queue: "never"})
	expect.Equal(t, n, 2)
	expect.NoError(t, err, n)
	after := dump(t, s)
	delete(before, "wake:open")
	delete(after, "wake:open")
	expect.Equal(t, fmt.Sprint(before), fmt.Sprint(after), "before", before, "after", after)
}

// Invalid names and too many pauses are refused.
func TestPauseRefuses(t *testing.T) {
	s := newStore(t)
	for _, p := range []task.Pausable{{Queue: "a b"}, {Queue: strings.Repeat("x", 65)}, {Group: "a\nb"}} {
		expect.Result(s.Limits.Pause(t.Context(), "ann", p)).Fails(t, "", p, "was paused")
	}
	var all []task.Pausable
	for i := range task.MaxPaused + 1 {
		all = append(all, task.Pausable{Group: fmt.Sprint("g", i)})
	}
	expect.Result(s.Limits.Pause(t.Context(), "ann", all...)).Fails(t, "more than 1000", "too many pauses")
	expect.Len(t, expect.Result(s.Limits.Paused(t.Context())).Value(t), 0, "are paused")
}
