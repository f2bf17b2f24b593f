package tdf

import "testing"

// A task's last run is its current round if a worker has claimed that round, and otherwise the previous round.
func TestLastRun(t *testing.T) {
	for name, c := range map[string]struct {
		h    Hash
		want int
	}{
		"open in its first round":           {Hash{"state": "open", "round": "0"}, 0},
		"open again":                        {Hash{"state": "open", "round": "2", "0:output": "x", "1:worker": "w", "1:lost": "5"}, 1},
		"running":                           {Hash{"state": "running", "round": "1", "0:output": "x", "1:worker": "w"}, 1},
		"executed":                          {Hash{"state": "executed", "round": "1", "1:worker": "w", "1:executed": "5"}, 1},
		"succeeded without a worker's name": {Hash{"state": "succeeded", "round": "1", "1:executed": "5"}, 1},
		"timed out without a text":          {Hash{"state": "timed_out", "round": "1", "0:output": "x", "1:worker": "w"}, 1},
		"lost too often":                    {Hash{"state": "failed", "round": "1", "0:output": "x", "1:worker": "w", "1:lost": "5"}, 1},
		"rejected":                          {Hash{"state": "failed", "round": "1", "0:output": "x", "1:error": "invalid"}, 1},
		"rejected, archived":                {Hash{"state": "archived", "outcome": "failed", "round": "1", "1:error": "invalid"}, 1},
		"expired while it waited":           {Hash{"state": "expired", "round": "1", "0:output": "x"}, 0},
		"expired while it ran":              {Hash{"state": "expired", "round": "1", "0:output": "x", "1:worker": "w"}, 1},
		"cancelled while it waited":         {Hash{"state": "archived", "outcome": "cancelled", "round": "1", "0:output": "x"}, 0},
	} {
		task, _ := ParseTask(1, c.h)
		if got := task.LastRun(); got != c.want {
			t.Errorf("%s: round %d, want %d", name, got, c.want)
		}
	}
}
