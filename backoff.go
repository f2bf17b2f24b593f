package tdf

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Limits for the back-off of a task.
const (
	MaxBackoff       = Seconds(365 * 24 * 60 * 60) // maximum value of backoff and backoff_max: 365 days
	MaxBackoffFactor = 1000                        // maximum value of backoff_factor
)

// backOff makes the task wait if the Move reopens it after a failed or timed out round (docs/lifecycle.md, "Back-off").
func (m *Move) backOff(t *Task) {
	if delay := t.backoff(); m.To == Open && delay > 0 {
		m.delay(t, delay)
		m.Note += fmt.Sprintf(", waits %s s", delay)
	}
}

// backoff returns how long the task waits if its current round fails or times out.
func (t *Task) backoff() Seconds {
	if t.Backoff == 0 {
		return 0
	}
	grown := float64(t.Backoff) * math.Pow(t.BackoffFactor, float64(t.Fails+t.Timeouts))
	delay := min(grown, float64(t.BackoffMax)) * spread(t.ID, t.Round)
	return Seconds(math.Round(delay*1000) / 1000)
}

// spreads is the number of different factors. It is small, so that many tasks with equal properties wait for the same
// time, and one call can reopen them with the same arguments.
const spreads = 17

// spread returns a factor from 0.8 to 1.2. Tasks that fail together get different factors, so they do not all start
// together again. The factor depends only on the id and the round, because all servers must decide alike.
func spread(id int64, round int) float64 {
	step := rand.New(rand.NewPCG(uint64(id), uint64(round))).IntN(spreads)
	return 0.8 + 0.4*float64(step)/(spreads-1)
}
