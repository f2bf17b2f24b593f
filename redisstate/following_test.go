package redisstate

import (
	"errors"
	"testing"

	"github.com/tdf-framework/tdf"
)

// A report with new tasks that arrives in a second call, not as a repetition of the first one, opens no tasks.
func TestTasksOfARoundAreOpenedOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		if _, err := s.Open(t.Context(), "manager", define("parent")); err != nil {
			t.Fatal(err)
		}
		c, err := s.Claim(t.Context(), ClaimRequest{Worker: "w", Most: 1, Lease: 60})
		if err != nil || len(c.Claims) != 1 {
			t.Fatal(c, err)
		}
		m, err := c.Claims[0].Task.Execute(c.Claims[0].ID, tdf.Result{Exit: "0"})
		if err != nil {
			t.Fatal(err)
		}
		report := Unit{Moves: []tdf.Move{m}, Open: []tdf.Properties{define("child")}, ByRound: true}
		first, err := s.Apply(t.Context(), "w", report)
		if err != nil || first[0].Err != nil || len(first[0].IDs) != 1 {
			t.Fatal(first, err)
		}
		second, err := s.Apply(t.Context(), "w", report)
		var state *tdf.StateError
		if err != nil || !errors.As(second[0].Err, &state) || state.State != tdf.Executed {
			t.Errorf("the second report got %+v, %v", second, err)
		}
		if last, err := s.LastID(t.Context()); last != first[0].IDs[0] || err != nil {
			t.Errorf("the last task is %d, want %d, %v", last, first[0].IDs[0], err)
		}
	})
}
