package rules

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tdf-framework/tdf/internal/task"
)

// backOff makes the task wait if the Move reopens it after a failed or timed out round (docs/lifecycle.md, "Back-off").
func (m *Move) backOff(t *task.Task) {
	if delay := backoff(t); m.To == task.Open && delay > 0 {
		m.delay(t, delay)
		m.Note += fmt.Sprintf(", waits %s s", delay)
	}
}

// backoff returns how long the task waits if its current round fails or times out.
func backoff(t *task.Task) task.Seconds {
	if t.Backoff == 0 {
		return 0
	}
	grown := float64(t.Backoff) * math.Pow(t.BackoffFactor, float64(t.Fails+t.Timeouts))
	delay := min(grown, float64(t.BackoffMax)) * spread(t.ID, t.Round)
	return task.Seconds(math.Round(delay*1000) / 1000)
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

// ReleaseLater returns a Move that puts off a running task: it reopens the task, which then waits for a delay
// (docs/lifecycle.md, "Put off"). The round counts as a release, and not as a failure. Workers can claim the task after
// the delay, but not before its start_after. After the first round, the delay is at least [leastDelay]. The error is
// [ErrLastRound] if the task can have no further round.
func ReleaseLater(t *task.Task, delay task.Seconds, reason string) (Move, error) {
	m, err := Release(t, reason)
	if err != nil {
		return m, err
	}
	delay = max(delay, 0)
	if t.Round > 0 {
		delay = max(delay, leastDelay)
	}
	m.delay(t, delay)
	m.Note = fmt.Sprintf("released for %s s: %s", delay, oneLine(reason))
	return m, nil
}

// leastDelay keeps a handler that asks for no delay from using up the rounds of its task in a few seconds.
const leastDelay = task.Seconds(1)

// delay makes a reopened task wait: workers can claim it after the delay, but not before its start_after.
func (m *Move) delay(t *task.Task, delay task.Seconds) {
	m.Score = Moment{After: delay, Min: t.StartAfter}
	m.Stamp = append(m.Stamp, Stamp{task.FieldReady, m.Score})
}

// putOff returns the delay that [ReleaseLater] or a back-off gave the current round. The delay begins when the
// round becomes open. putOff returns 0 if there is no delay, or if the delay ends before start_after. If Redis's clock
// is set back, the time in the property ready becomes wrong, but the delay stays right.
func putOff(t *task.Task) task.Seconds {
	if t.Ready <= t.StartAfter.Add(scoreSlack) {
		return 0 // in this case, the property ready only keeps the order of tasks with the same start_after
	}
	if t.Round == 0 || t.Current().Linked > 0 {
		return 0 // the round waited for dependencies, and was not put off: a delay always begins a new round
	}
	return max(0, t.Ready.Sub(t.Current().Entered[task.Open]))
}
