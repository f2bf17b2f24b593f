package redisstate

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

var must = expect.NoError

// Only one live worker at a time can have a name (docs/operations.md, "Names of workers").
func TestNamesBelongToOneWorker(t *testing.T) {
	first := newStore(t)
	second := connect(t, first.Addr, first.Keys.Namespace())
	w := WorkerInfo{Name: "w", Host: "h", PID: 17, Process: "p", Lease: 60, State: "working", Slots: 2, Runs: []int64{3, 4}}
	must(t, took(first.TakeName(t.Context(), w, PriorOwner{})))
	must(t, signed(first.WorkerHeartbeat(t.Context(), w)))
	taken := mustBeTaken(t, took(second.TakeName(t.Context(), w, PriorOwner{})))
	expect.Equal(t, taken.Host, "h")
	expect.Equal(t, taken.PID, "17")
	expect.Equal(t, taken.Process, "p")
	expect.Equal(t, taken.Boot, first.Boot())
	expect.NotEqual(t, taken.Seen, 0)
	expect.Contains(t, taken.Error(), "host h, pid 17, last seen ")
	mustBeTaken(t, took(second.TakeName(t.Context(), w, PriorOwner{Gone: "another boot"})))

	must(t, took(second.TakeName(t.Context(), w, PriorOwner{Gone: first.Boot()}))) // the second worker knows that the first is gone
	mustBeTaken(t, signed(first.WorkerHeartbeat(t.Context(), w)))
	w.State = "gone"
	must(t, signed(second.WorkerHeartbeat(t.Context(), w)))
	must(t, took(first.TakeName(t.Context(), w, PriorOwner{}))) // the second worker has reported its end
	mustBeTaken(t, signed(second.WorkerHeartbeat(t.Context(), w)))
}

func TestSilentWorkersLoseTheirNames(t *testing.T) {
	onEach(t, func(t *testing.T, first *Store) {
		second := connect(t, first.Addr, first.Keys.Namespace())
		w := WorkerInfo{Name: "w", Lease: 60}
		must(t, took(first.TakeName(t.Context(), w, PriorOwner{})))
		now := expect.Result(first.Now(t.Context())).Value(t)
		silentFor := func(d tdf.Seconds) {
			first.Redis.HSet(t.Context(), first.Keys.Worker("w"), "seen", now.Add(-d).String())
		}
		silentFor(30)
		mustBeTaken(t, took(second.TakeName(t.Context(), w, PriorOwner{})))
		silentFor(61)
		// No server has sent a heartbeat, so there is no proof that Redis was available.
		taken := mustBeTaken(t, took(second.TakeName(t.Context(), w, PriorOwner{})))
		expect.True(t, taken.Silent(), taken)
		must(t, first.ServerHeartbeat(t.Context(), "s", now.Add(-2))) // no proof, because the server sent its heartbeat before the end of the lease
		mustBeTaken(t, took(second.TakeName(t.Context(), w, PriorOwner{})))
		mustBeTaken(t, took(second.TakeName(t.Context(), w, PriorOwner{Seen: now.Add(-61), Since: now.Add(-30)})))
		mustBeTaken(t, took(second.TakeName(t.Context(), w, PriorOwner{Seen: now.Add(-62), Since: now.Add(-61)})))
		must(t, first.ServerHeartbeat(t.Context(), "s", now))
		must(t, first.SetGrace(t.Context(), tdf.Grace{Running: now.Add(20)}))
		text := mustBeTaken(t, took(second.TakeName(t.Context(), w, PriorOwner{}))).Error()
		expect.True(t, strings.Contains(text, "Redis was away, so that worker may be alive; try again in "), text)
		must(t, first.SetGrace(t.Context(), tdf.Grace{Running: now.Add(-1)}))
		must(t, signed(first.WorkerHeartbeat(t.Context(), w))) // the owner keeps its name
		silentFor(61)
		must(t, took(second.TakeName(t.Context(), w, PriorOwner{})))
		mustBeTaken(t, signed(first.WorkerHeartbeat(t.Context(), w)))
		first.Redis.Del(t.Context(), first.Keys.Servers())
		silentFor(90)
		must(t, took(first.TakeName(t.Context(), w, PriorOwner{Seen: now.Add(-90), Since: now.Add(-61)}))) // the first worker has waited for longer than the lease
		mustBeTaken(t, signed(second.WorkerHeartbeat(t.Context(), w)))
		must(t, took(second.TakeName(t.Context(), w, PriorOwner{Gone: first.Boot()})))

		first.Redis.Del(t.Context(), first.Keys.Worker("w")) // as if Redis had lost its data
		must(t, signed(second.WorkerHeartbeat(t.Context(), w)))
		first.Redis.Set(t.Context(), first.Keys.Worker("w"), "a value of another type", 0)
		must(t, signed(second.WorkerHeartbeat(t.Context(), w)))
	})
}

// A heartbeat of a registered worker changes only what it reports. It undoes neither a registration nor a sign-off, and a
// registration says that older claims must be given up until this is done.
func TestBeatKeepsTheRegistration(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		w := WorkerInfo{Name: "w", Boot: "1", Host: "h", Lease: 60, Slots: 2, State: "working", Offer: tdf.Offer{Tags: []string{"a"}}, Remember: 2 * week}
		register := func(boot string) (giveUp tdf.Time) {
			w.Boot = boot
			_, giveUp, err := s.Register(t.Context(), w)
			expect.NoError(t, err)
			return giveUp
		}
		beat := func(boot string, b Beat) (string, error) { return s.Beat(t.Context(), "w", boot, b) }
		expect.FailsWith(t, signed(beat("1", Beat{})), ErrSignedOff) // unknown
		expect.Equal(t, register("1"), 0)
		w.Offer.Tags = []string{"b"}
		register("1")
		before := s.Redis.HGetAll(t.Context(), s.Keys.Worker("w")).Val()
		expect.Result(beat("1", Beat{Runs: &[]int64{3, 4}})).Is(t, "")
		before["runs"], before["seen"] = "3 4", s.Redis.HGet(t.Context(), s.Keys.Worker("w"), "seen").Val()
		expect.Equal(t, s.Redis.HGetAll(t.Context(), s.Keys.Worker("w")).Val(), before)
		expect.Compare(t, s.Redis.TTL(t.Context(), s.Keys.Worker("w")).Val(), ">", (week + day).Std())
		expect.Result(s.Drain(t.Context(), "w", "eve")).Is(t, true)
		expect.Result(beat("1", Beat{})).Is(t, "eve")
		expect.Equal(t, s.Redis.HGet(t.Context(), s.Keys.Worker("w"), "state").Val(), "draining")
		for range 2 { // the second sign-off comes too late, as the heartbeat after it
			err := signed(beat("1", Beat{Gone: true, Runs: new([]int64)}))
			expect.OneOf(t, err, nil, error(ErrSignedOff))
		}
		expect.FailsWith(t, signed(beat("1", Beat{})), ErrSignedOff)
		expect.Equal(t, s.Redis.HMGet(t.Context(), s.Keys.Worker("w"), "state", "runs").Val(), []any{"gone", ""})
		giveUp := register("2")
		expect.NotEqual(t, giveUp, 0)
		expect.Equal(t, register("2"), giveUp)
		mustBeTaken(t, signed(beat("1", Beat{GaveUp: true})))
		expect.Equal(t, register("2"), giveUp)
		expect.Result(beat("2", Beat{GaveUp: true})).OK(t)
		expect.Equal(t, register("2"), 0)
	})
}

// When another worker has taken over a name, GiveUp ends the leases of the earlier claims under this name, so that the
// rounds of these claims are lost at once. It does not end the leases of later claims under this name, or of other
// workers' claims.
func TestGiveUp(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("a"), define("b"), define("c"))
	mustClaim(t, s, 2) // by worker w
	other := expect.Result(s.Claim(t.Context(), ClaimRequest{Worker: "v", Most: 1, Lease: 60})).Value(t)
	_, since, err := s.TakeName(t.Context(), WorkerInfo{Name: "w", Lease: 60}, PriorOwner{})
	must(t, err)
	mustOpen(t, s, define("d"))
	later := mustClaim(t, s, 1)[0] // by a later owner of the name w
	expect.Equal(t, expect.Result(s.GiveUp(t.Context(), "w", since)).Value(t), 2)
	now := expect.Result(s.Now(t.Context())).Value(t)
	expect.Len(t, expect.Result(dueTasks(t.Context(), s, now, 10)).Value(t), 2, "due")
	mustSettle(t, s, 1)
	mustSettle(t, s, 2)
	got := task(t, s, 2)
	expect.Equal(t, got.Losses, 1)
	expect.Equal(t, got.State, tdf.Open)
	for _, c := range []Claim{other.Claims[0], later} {
		renewed := expect.Result(s.Renew(t.Context(), 60, Renewal{ID: c.Task.ID, Claim: c.ID, Until: tdf.Never})).Value(t)
		expect.NoError(t, renewed.Lost[0])
	}
	mustBeSound(t, s)
}

func TestLiveReports(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		mustOpen(t, s, define("a"))
		c := mustClaim(t, s, 1)[0]
		report := func(r LiveReport) Renewed {
			t.Helper()
			renewed := expect.Result(s.Renew(t.Context(), 60, Renewal{ID: 1, Round: c.Task.Round, Claim: c.ID, Until: tdf.Never, Report: r})).Value(t)
			expect.NoError(t, renewed.Lost[0])
			return renewed
		}
		tail, progress, checkpoint := &tdf.Tail{Text: "out\x00\xff", TailEnd: tdf.TailEnd{All: 7000, Stdout: 6999, Stderr: -1}}, "0.25 a quarter", "\x00here"
		report(LiveReport{Tail: tail, Progress: &progress, Checkpoint: &checkpoint, Updates: []string{"one", "two"}, FirstUpdate: 1})
		report(LiveReport{Updates: []string{"two", "three"}, FirstUpdate: 2}) // repeated, as if the answer had been lost
		got := task(t, s, 1)
		r := got.Current()
		expect.Equal(t, r.Tail, tail.Text)
		expect.Equal(t, tdf.ParseTailEnd(r.TailEnd, r.Tail), tail.TailEnd)
		expect.Equal(t, r.Progress, tdf.Progress{Fraction: 0.25, Text: "a quarter"})
		expect.Equal(t, got.Checkpoint, checkpoint)
		must(t, s.Follow(t.Context(), 1))
		expect.True(t, report(LiveReport{}).Followed[0], "the task is followed, but the reply does not say so")

		mustExecute(t, s, c, tdf.Result{Error: "boom", Exit: "1", ClearLive: true})
		if r := task(t, s, 1).Current(); r.Tail+r.TailEnd != "" || r.Progress.Fraction != 0.25 {
			t.Errorf("%+v", r)
		}
		mustSettle(t, s, 1)
		mustMove(t, s, 1, (*tdf.Task).Reopen)
		c = mustClaim(t, s, 1)[0]
		earlier := expect.Result(s.ReadOne(t.Context(), 1, Want{Texts: SameTexts(TextsOf{OfTask, tdf.TextCheckpoint}, TextsOf{0, tdf.TextError})})).Value(t)
		expect.Equal(t, earlier.Task.Checkpoint, checkpoint)
		expect.Equal(t, earlier.Task.Rounds.At(0).Error, "boom")
		report(LiveReport{Updates: []string{"again"}, FirstUpdate: 1})
		expect.Equal(t, updates(t, s, Update{}), "0-1 one, 0-2 two, 0-3 three, 1-1 again")
		expect.Equal(t, updates(t, s, Update{Round: 0, Number: 2}), "0-3 three, 1-1 again")
		mustBeSound(t, s)
	})
}

func updates(t *testing.T, s *Store, after Update) string {
	t.Helper()
	all := expect.Result(s.Updates(t.Context(), 1, after, 100)).Value(t)
	var texts []string
	for _, u := range all {
		expect.True(t, u.Time != 0, "no time", u)
		texts = append(texts, strconv.Itoa(u.Round)+"-"+strconv.Itoa(u.Number)+" "+u.Line)
	}
	return strings.Join(texts, ", ")
}

func mustBeTaken(t *testing.T, err error) *NameTakenError {
	t.Helper()
	var taken *NameTakenError
	expect.MustTrue(t, errors.As(err, &taken), err, "want a *NameTakenError")
	return taken
}

// SucceededElsewhere reports successes of other workers for an hour. Redis keeps at most two successes per program,
// even if there are many workers.
func TestSuccesses(t *testing.T) {
	s := newStore(t)
	elsewhere := func(worker, program string, want bool) {
		t.Helper()
		expect.Result(s.SucceededElsewhere(t.Context(), worker, program)).Is(t, want, worker, program)
	}
	elsewhere("w1", "p", false)
	must(t, s.NoteSuccesses(t.Context(), "w1", "p", "q"))
	elsewhere("w1", "p", false)
	elsewhere("w2", "p", true)
	elsewhere("w2", "r", false)
	for i := range 20 {
		must(t, s.NoteSuccesses(t.Context(), "w"+strconv.Itoa(i), "p"))
	}
	elsewhere("w1", "p", true)
	key := s.Keys.Successes("p")
	expect.Equal(t, s.Redis.ZCard(t.Context(), key).Val(), keptSuccesses, "Redis keeps the successes of … workers")
	left := s.Redis.TTL(t.Context(), key).Val()
	expect.Compare(t, left, ">", 0)
	expect.Compare(t, left, "<=", successLife)
	for _, z := range s.Redis.ZRangeWithScores(t.Context(), key, 0, -1).Val() {
		z.Score -= successLife.Seconds() + 60
		s.Redis.ZAdd(t.Context(), key, z)
	}
	elsewhere("w1", "p", false)
	must(t, s.NoteSuccesses(t.Context(), "w"))
}
