package presence

import (
	"errors"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
)

// Only one live worker at a time can have a name (docs/operations.md, "Names of workers").
func TestNamesBelongToOneWorker(t *testing.T) {
	first := of(conntest.New(t))
	second := of(conntest.Another(t, first.Conn))
	w := WorkerInfo{Name: "w", Host: "h", PID: 17, Process: "p", Lease: 60, State: "working", Slots: 2, Runs: []int64{3, 4}}
	expect.NoError(t, took(first.TakeName(t.Context(), w, PriorOwner{})))
	expect.NoError(t, signed(first.WorkerHeartbeat(t.Context(), w)))
	taken := mustBeTaken(t, took(second.TakeName(t.Context(), w, PriorOwner{})))
	expect.Equal(t, taken.Host, "h")
	expect.Equal(t, taken.PID, "17")
	expect.Equal(t, taken.Process, "p")
	expect.Equal(t, taken.Boot, first.Conn.Boot())
	expect.NotEqual(t, taken.Seen, 0)
	expect.Contains(t, taken.Error(), "host h, pid 17, last seen ")
	mustBeTaken(t, took(second.TakeName(t.Context(), w, PriorOwner{Gone: "another boot"})))

	expect.NoError(t, took(second.TakeName(t.Context(), w, PriorOwner{Gone: first.Conn.Boot()}))) // the second worker knows that the first is gone
	mustBeTaken(t, signed(first.WorkerHeartbeat(t.Context(), w)))
	w.State = "gone"
	expect.NoError(t, signed(second.WorkerHeartbeat(t.Context(), w)))
	expect.NoError(t, took(first.TakeName(t.Context(), w, PriorOwner{}))) // the second worker has reported its end
	mustBeTaken(t, signed(second.WorkerHeartbeat(t.Context(), w)))
}

func TestSilentWorkersLoseTheirNames(t *testing.T) {
	onEach(t, func(t *testing.T, first *Presence) {
		second := of(conntest.Another(t, first.Conn))
		w := WorkerInfo{Name: "w", Lease: 60}
		expect.NoError(t, took(first.TakeName(t.Context(), w, PriorOwner{})))
		now := expect.Result(first.Conn.Now(t.Context())).Value(t)
		silentFor := func(d task.Seconds) {
			first.Conn.Redis.HSet(t.Context(), first.Conn.Keys.Worker("w"), "seen", now.Add(-d).String())
		}
		silentFor(30)
		mustBeTaken(t, took(second.TakeName(t.Context(), w, PriorOwner{})))
		silentFor(61)
		// No server has sent a heartbeat, so there is no proof that Redis was available.
		taken := mustBeTaken(t, took(second.TakeName(t.Context(), w, PriorOwner{})))
		expect.True(t, taken.Silent(), taken)
		expect.NoError(t, first.ServerHeartbeat(t.Context(), "s", now.Add(-2))) // no proof, because the server sent its heartbeat before the end of the lease
		mustBeTaken(t, took(second.TakeName(t.Context(), w, PriorOwner{})))
		mustBeTaken(t, took(second.TakeName(t.Context(), w, PriorOwner{Seen: now.Add(-61), Since: now.Add(-30)})))
		mustBeTaken(t, took(second.TakeName(t.Context(), w, PriorOwner{Seen: now.Add(-62), Since: now.Add(-61)})))
		expect.NoError(t, first.ServerHeartbeat(t.Context(), "s", now))
		expect.NoError(t, first.SetGrace(t.Context(), rules.Grace{Running: now.Add(20)}))
		text := mustBeTaken(t, took(second.TakeName(t.Context(), w, PriorOwner{}))).Error()
		expect.True(t, strings.Contains(text, "Redis was away, so that worker may be alive; try again in "), text)
		expect.NoError(t, first.SetGrace(t.Context(), rules.Grace{Running: now.Add(-1)}))
		expect.NoError(t, signed(first.WorkerHeartbeat(t.Context(), w))) // the owner keeps its name
		silentFor(61)
		expect.NoError(t, took(second.TakeName(t.Context(), w, PriorOwner{})))
		mustBeTaken(t, signed(first.WorkerHeartbeat(t.Context(), w)))
		first.Conn.Redis.Del(t.Context(), first.Conn.Keys.Servers())
		silentFor(90)
		expect.NoError(t, took(first.TakeName(t.Context(), w, PriorOwner{Seen: now.Add(-90), Since: now.Add(-61)}))) // the first worker has waited for longer than the lease
		mustBeTaken(t, signed(second.WorkerHeartbeat(t.Context(), w)))
		expect.NoError(t, took(second.TakeName(t.Context(), w, PriorOwner{Gone: first.Conn.Boot()})))

		first.Conn.Redis.Del(t.Context(), first.Conn.Keys.Worker("w")) // as if Redis had lost its data
		expect.NoError(t, signed(second.WorkerHeartbeat(t.Context(), w)))
		first.Conn.Redis.Set(t.Context(), first.Conn.Keys.Worker("w"), "a value of another type", 0)
		expect.NoError(t, signed(second.WorkerHeartbeat(t.Context(), w)))
	})
}

// A heartbeat of a registered worker changes only what it reports. It undoes neither a registration nor a sign-off, and a
// registration says that older claims must be given up until this is done.
func TestBeatKeepsTheRegistration(t *testing.T) {
	onEach(t, func(t *testing.T, s *Presence) {
		w := WorkerInfo{Name: "w", Boot: "1", Host: "h", Lease: 60, Slots: 2, State: "working", Offer: class.Offer{Tags: []string{"a"}}}
		register := func(boot string) (giveUp task.Time) {
			w.Boot = boot
			_, giveUp, err := s.Register(t.Context(), w)
			expect.NoError(t, err)
			return giveUp
		}
		beat := func(boot string, b HeartbeatChanges) (string, error) { return s.Beat(t.Context(), "w", boot, b) }
		expect.FailsWith(t, signed(beat("1", HeartbeatChanges{})), ErrSignedOff) // unknown
		expect.Equal(t, register("1"), 0)
		w.Offer.Tags = []string{"b"}
		register("1")
		before := s.Conn.Redis.HGetAll(t.Context(), s.Conn.Keys.Worker("w")).Val()
		expect.Result(beat("1", HeartbeatChanges{Runs: &[]int64{3, 4}})).Is(t, "")
		before["runs"], before["seen"] = "3 4", s.Conn.Redis.HGet(t.Context(), s.Conn.Keys.Worker("w"), "seen").Val()
		expect.Equal(t, s.Conn.Redis.HGetAll(t.Context(), s.Conn.Keys.Worker("w")).Val(), before)
		expect.Compare(t, s.Conn.Redis.TTL(t.Context(), s.Conn.Keys.Worker("w")).Val(), ">", (week - day).Std())
		expect.Result(s.Drain(t.Context(), "w", "eve")).Is(t, true)
		expect.Result(beat("1", HeartbeatChanges{})).Is(t, "eve")
		expect.Equal(t, s.Conn.Redis.HGet(t.Context(), s.Conn.Keys.Worker("w"), "state").Val(), "draining")
		for range 2 { // the second sign-off comes too late, as the heartbeat after it
			err := signed(beat("1", HeartbeatChanges{Gone: true, Runs: new([]int64)}))
			expect.OneOf(t, err, nil, error(ErrSignedOff))
		}
		expect.FailsWith(t, signed(beat("1", HeartbeatChanges{})), ErrSignedOff)
		expect.Equal(t, s.Conn.Redis.HMGet(t.Context(), s.Conn.Keys.Worker("w"), "state", "runs").Val(), []any{"gone", ""})
		giveUp := register("2")
		expect.NotEqual(t, giveUp, 0)
		expect.Equal(t, register("2"), giveUp)
		mustBeTaken(t, signed(beat("1", HeartbeatChanges{GaveUp: true})))
		expect.Equal(t, register("2"), giveUp)
		expect.Result(beat("2", HeartbeatChanges{GaveUp: true})).OK(t)
		expect.Equal(t, register("2"), 0)
	})
}

func mustBeTaken(t *testing.T, err error) *NameTakenError {
	t.Helper()
	var taken *NameTakenError
	expect.MustTrue(t, errors.As(err, &taken), err, "want a *NameTakenError")
	return taken
}

// signed returns only the error of a call of WorkerHeartbeat.
func signed(_ string, err error) error { return err }

// took returns only the error of a call of TakeName.
func took(_ string, _ task.Time, err error) error { return err }
