package redisstate

import (
	"testing"

	"github.com/tdf-framework/tdf"
)

// A read with the fields Rules does not read the definition of a running or executed task. So the missing definition
// does not make the task invalid.
func TestRulesOfARunningTaskAreValid(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("a"), define("b"), define("c"))
	claims := mustClaim(t, s, 2)
	m, err := claims[0].Task.Execute(claims[0].ID, tdf.Result{Exit: "0"})
	mustApply(t, s, m, err)
	for id, state := range map[int64]tdf.State{1: tdf.Executed, 2: tdf.Running, 3: tdf.Open} {
		for _, fields := range []Fields{Rules, Rules | Lists, Rules | Facts} {
			x, err := s.ReadOne(t.Context(), id, Want{Fields: fields})
			if err != nil || x.Task.State != state || x.Invalid != nil {
				t.Errorf("task %d, fields %b: %s, %v, invalid: %v", id, fields, x.Task.State, err, x.Invalid)
			}
		}
	}
}
