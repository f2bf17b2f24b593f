package redisstate_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/lua"
	"github.com/tdf-framework/tdf/redisstate/walk"
)

// turnOnce makes one call of Turn, and describes its answer.
func turnOnce(t *testing.T, s *redisstate.Store) string {
	t.Helper()
	running := read(t, s, runningID)
	m := expect.Result(rules.Execute(running, running.Current().Claim, rules.Result{Output: "o", Exit: "0"})).Value(t)
	outcomes, c, err, claimErr := s.Turn(t.Context(), t.Context(), redisstate.ClaimParams{Worker: "w", Most: 2, Lease: 60}, m)
	answer := fmt.Sprint(outcomes, err, claimErr)
	for _, claim := range c.Claims {
		answer += fmt.Sprint(" ", claim.Task.ID, claim.Task.Input, claim.Task.State, claim.Task.Round)
	}
	return answer
}

// If replies to the report or to the claim are lost, the answer and all data in Redis are as if no reply was lost.
func TestLostRepliesToAReportWithAClaim(t *testing.T) {
	t.Parallel()
	undisturbed := prepared(t, redistest.Shared(t))
	want := turnOnce(t, undisturbed)
	expect.MustEqual(t, want, "[{[] [] <nil> []}] <nil> <nil> 4firstrunning0 5secondrunning0", "without a loss")
	wantWorld := anonymize(dump(t, undisturbed), undisturbed)
	for name, script := range map[string]*lua.Script{"report": lua.Move, "claim": lua.Claim} {
		for drops := 1; drops <= 3; drops++ {
			t.Run(fmt.Sprintf("%s %d", name, drops), func(t *testing.T) {
				proxy := redistest.NewProxy(t, redistest.Shared(t))
				s := prepared(t, proxy.Addr)
				proxy.DropReplies(drops, func(command []string) bool { return slices.Contains(command, s.Conn.Script(script).Hash()) })
				expect.Equal(t, turnOnce(t, s), want, "answered")
				expect.Equal(t, proxy.Dropped(), drops, "replies were dropped")
				expect.Equal(t, changed(t, wantWorld, anonymize(dump(t, s), s)), "")
				mustBeSound(t, s)
			})
		}
	}
}

// A full Redis accepts the report, and refuses the claim at once.
func TestFullRedisAcceptsAReportWithAClaim(t *testing.T) {
	full := redistest.Start(t)
	s := prepared(t, full.Addr)
	must(t, s.Conn.Redis.ConfigSet(t.Context(), "maxmemory", "1").Err())
	running := read(t, s, runningID)
	m := expect.Result(rules.Execute(running, running.Current().Claim, rules.Result{Output: "o", Exit: "0"})).Value(t)
	outcomes, c, err, claimErr := s.Turn(t.Context(), t.Context(), redisstate.ClaimParams{Worker: "w", Most: 2, Lease: 60}, m)
	expect.NoError(t, err)
	expect.MustLen(t, outcomes, 1)
	expect.NoError(t, outcomes[0].Err)
	expect.Fails(t, claimErr, "")
	expect.Len(t, c.Claims, 0)
	expect.Equal(t, read(t, s, runningID).State, task.Executed, "the task")
	mustBeSound(t, s)
}

// A Redis that has lost its scripts gets them again.
func TestReportWithAClaimLoadsItsScripts(t *testing.T) {
	t.Parallel()
	own := redistest.Start(t)
	s := prepared(t, own.Addr)
	want := turnOnce(t, prepared(t, redistest.Shared(t)))
	must(t, s.Conn.Redis.ScriptFlush(t.Context()).Err())
	expect.Equal(t, turnOnce(t, s), want, "answered")
	mustBeSound(t, s)
}

// A report with new tasks that arrives in a second call, not as a repetition of the first one, opens no tasks.
func TestTasksOfARoundAreOpenedOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		expect.Result(s.Open(t.Context(), "manager", define("parent"))).OK(t)
		c := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 60})).Value(t)
		expect.MustLen(t, c.Claims, 1)
		m := expect.Result(rules.Execute(c.Claims[0].Task, c.Claims[0].ID, rules.Result{Exit: "0"})).Value(t)
		report := redisstate.Unit{Moves: []rules.Move{m}, Open: []task.Properties{define("child")}, ByRound: true}
		first := expect.Result(s.Apply(t.Context(), "w", report)).Value(t)
		expect.NoError(t, first[0].Err)
		expect.MustLen(t, first[0].IDs, 1)
		second, err := s.Apply(t.Context(), "w", report)
		var state *rules.StateError
		expect.NoError(t, err)
		expect.MustTrue(t, errors.As(second[0].Err, &state), "the second report got", second, err)
		expect.Equal(t, state.State, task.Executed)
		last, err := walk.LastID(t.Context(), s.Conn)
		expect.Equal(t, last, first[0].IDs[0])
		expect.NoError(t, err, "the last task is", last)
	})
}
