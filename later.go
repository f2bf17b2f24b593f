package tdf

import "fmt"

// ReleaseLater returns a Move that puts off a running task: it reopens the task, which then waits for a delay
// (docs/lifecycle.md, "Put off"). The round counts as a release, and not as a failure. Workers can claim the task after
// the delay, but not before its start_after. After the first round, the delay is at least [leastDelay]. The error is [ErrLastRound] if the task can have no further round.
func (t *Task) ReleaseLater(delay Seconds, reason string) (Move, error) {
	m, err := t.Release(reason)
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
const leastDelay = Seconds(1)

// delay makes a reopened task wait: workers can claim it after the delay, but not before its start_after.
func (m *Move) delay(t *Task, delay Seconds) {
	m.Score = Moment{After: delay, Min: t.StartAfter}
	m.Stamp = append(m.Stamp, Stamp{fieldReady, m.Score})
}

// putOff returns the delay that [Task.ReleaseLater] or a back-off gave the current round. The delay begins when the round becomes
// open. putOff returns 0 if there is no delay, or if the delay ends before start_after. If Redis's clock is set back,
// the time in the property ready becomes wrong, but the delay stays right.
func (t *Task) putOff() Seconds {
	if t.Ready <= t.StartAfter.Add(scoreSlack) {
		return 0 // in this case, the property ready only keeps the order of tasks with the same start_after
	}
	if t.Round == 0 || t.Current().Linked > 0 {
		return 0 // the round waited for dependencies, and was not put off: a delay always begins a new round
	}
	return max(0, t.Ready.Sub(t.Current().Entered[Open]))
}
