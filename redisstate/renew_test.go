package redisstate_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
	"github.com/tdf-framework/tdf/redisstate/updates"
)

// When another worker has taken over a name, GiveUp ends the leases of the earlier claims under this name, so that the
// rounds of these claims are lost at once. It does not end the leases of later claims under this name, or of other
// workers' claims.
func TestGiveUp(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("a"), define("b"), define("c"))
	mustClaim(t, s, 2) // by worker w
	other := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "v", Most: 1, Lease: 60})).Value(t)
	_, since, err := s.Presence.TakeName(t.Context(), presence.WorkerInfo{Name: "w", Lease: 60}, presence.PriorOwner{})
	expect.NoError(t, err)
	mustOpen(t, s, define("d"))
	later := mustClaim(t, s, 1)[0] // by a later owner of the name w
	expect.Equal(t, expect.Result(s.GiveUp(t.Context(), "w", since)).Value(t), 2)
	now := expect.Result(s.Now(t.Context())).Value(t)
	expect.Len(t, expect.Result(s.DueTasks(t.Context(), now, 10)).Value(t), 2, "due")
	mustSettle(t, s, 1)
	mustSettle(t, s, 2)
	got := read(t, s, 2)
	expect.Equal(t, got.Losses, 1)
	expect.Equal(t, got.State, task.Open)
	for _, c := range []redisstate.Claim{other.Claims[0], later} {
		renewed := expect.Result(s.Renew(t.Context(), 60, redisstate.LeaseRenewal{ID: c.Task.ID, Claim: c.ID})).Value(t)
		expect.NoError(t, renewed.Lost[0])
	}
	mustBeSound(t, s)
}

func TestLiveReports(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		mustOpen(t, s, define("a"))
		c := mustClaim(t, s, 1)[0]
		report := func(r redisstate.LiveReport) redisstate.RenewResult {
			t.Helper()
			renewed := expect.Result(s.Renew(t.Context(), 60, redisstate.LeaseRenewal{ID: 1, Round: c.Task.Round, Claim: c.ID, Report: r})).Value(t)
			expect.NoError(t, renewed.Lost[0])
			return renewed
		}
		tail, progress, checkpoint := &task.Tail{Text: "out\x00\xff", TailEnd: task.TailEnd{All: 7000, Stdout: 6999, Stderr: -1}}, "0.25 a quarter", "\x00here"
		report(redisstate.LiveReport{Tail: tail, Progress: &progress, Checkpoint: &checkpoint, Updates: []string{"one", "two"}, FirstUpdate: 1})
		report(redisstate.LiveReport{Updates: []string{"two", "three"}, FirstUpdate: 2}) // repeated, as if the answer had been lost
		got := read(t, s, 1)
		r := got.Current()
		expect.Equal(t, r.Tail, tail.Text)
		expect.Equal(t, task.ParseTailEnd(r.TailEnd, r.Tail), tail.TailEnd)
		expect.Equal(t, r.Progress, task.Progress{Fraction: 0.25, Text: "a quarter"})
		expect.Equal(t, got.Checkpoint, checkpoint)
		must(t, s.Updates.Follow(t.Context(), 1))
		expect.True(t, report(redisstate.LiveReport{}).Followed[0], "the task is followed, but the reply does not say so")

		mustExecute(t, s, c, rules.Result{Error: "boom", Exit: "1", ClearLive: true})
		if r := read(t, s, 1).Current(); r.Tail+r.TailEnd != "" || r.Progress.Fraction != 0.25 {
			t.Errorf("%+v", r)
		}
		mustSettle(t, s, 1)
		mustMove(t, s, 1, rules.Reopen)
		c = mustClaim(t, s, 1)[0]
		earlier := expect.Result(s.ReadOne(t.Context(), 1, redisstate.Want{Texts: redisstate.SameTexts(redisstate.TextsOf{redisstate.OfTask, task.TextCheckpoint}, redisstate.TextsOf{0, task.TextError})})).Value(t)
		expect.Equal(t, earlier.Task.Checkpoint, checkpoint)
		expect.Equal(t, earlier.Task.Rounds.At(0).Error, "boom")
		report(redisstate.LiveReport{Updates: []string{"again"}, FirstUpdate: 1})
		expect.Equal(t, reported(t, s, updates.Update{}), "0-1 one, 0-2 two, 0-3 three, 1-1 again")
		expect.Equal(t, reported(t, s, updates.Update{Round: 0, Number: 2}), "0-3 three, 1-1 again")
		mustBeSound(t, s)
	})
}

func reported(t *testing.T, s *redisstate.Store, after updates.Update) string {
	t.Helper()
	all := expect.Result(s.Updates.After(t.Context(), 1, after, 100)).Value(t)
	var texts []string
	for _, u := range all {
		expect.True(t, u.Time != 0, "no time", u)
		texts = append(texts, strconv.Itoa(u.Round)+"-"+strconv.Itoa(u.Number)+" "+u.Line)
	}
	return strings.Join(texts, ", ")
}
