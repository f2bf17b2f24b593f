package tdf

import "fmt"

// ReleaseLater releases a running task for a worker that asks for another round after a delay. The round counts as a
// release, and not as a failure. The task can be claimed after the delay, and not before its start_after. The error
// may be [ErrLastRound] (docs/lifecycle.md, "Put off").
func (t *Task) ReleaseLater(delay Seconds, reason string) (Move, error) {
	m, err := t.Release(reason)
	if err != nil {
		return m, err
	}
	m.Score = Moment{After: max(delay, 0), Min: t.StartAfter}
	m.Stamp = append(m.Stamp, Stamp{fieldReady, m.Score})
	m.Note = fmt.Sprintf("released for %s s: %s", max(delay, 0), oneLine(reason))
	return m, nil
}

// putOff returns the delay that [Task.ReleaseLater] gave the current round, counted from the time when the round became
// open. It returns 0 if there is no delay, or if the delay ends before start_after. A delay stays right when the clock
// is set back; the time ready does not.
func (t *Task) putOff() Seconds {
	if t.Ready <= t.StartAfter.Add(scoreSlack) {
		return 0 // ready only orders tasks that have the same start_after
	}
	return max(0, t.Ready.Sub(t.Current().Entered[Open]))
}
