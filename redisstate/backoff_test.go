package redisstate_test

import (
	"fmt"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// After a failed or timed out round, no worker can claim the task before the end of its wait (docs/lifecycle.md,
// "Back-off").
func TestBackoff(t *testing.T) {
	t.Parallel()
	for _, timesOut := range []bool{false, true} {
		t.Run(fmt.Sprint("timeout ", timesOut), func(t *testing.T) {
			onEach(t, func(t *testing.T, s *redisstate.Store) {
				d := define("x")
				d.MaxFails, d.MaxTimeouts, d.Backoff, d.BackoffMax = 1, 1, 1000, 500
				id := mustOpen(t, s, d)[0]
				c := mustClaim(t, s, 1)[0]
				if timesOut {
					mustMove(t, s, id, rules.TimeOut)
				} else {
					mustExecute(t, s, c, rules.Result{Error: "boom", Exit: "1"})
					mustSettle(t, s, id)
				}

				got := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 30})).Value(t)
				expect.MustLen(t, got.Claims, 0)
				waiting := read(t, s, id)
				wait := got.Next.Sub(got.Now)
				expect.Equal(t, waiting.State, task.Open)
				expect.Compare(t, wait, ">=", 390)
				expect.Compare(t, wait, "<=", 600)
				expect.Equal(t, waiting.Ready, got.Next)
				m, err := rules.Change(waiting, task.Changes{Input: new("y")})
				mustApply(t, s, m, err)
				expect.Equal(t, read(t, s, id).Ready, waiting.Ready, "a change of the input moved the end of the wait by … s")
				mustBeSound(t, s)
			})
		})
	}
}
