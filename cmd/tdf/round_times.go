package main

import "github.com/tdf-framework/tdf"

// outputWhole reports whether Redis has the whole stdout of a round.
func outputWhole(r *tdf.Round) bool { return int64(len(r.Output)) >= r.OutputBytes }

// errorWhole reports whether Redis has the whole stderr of a round. TDF may add a line to the stderr.
func errorWhole(r *tdf.Round) bool { return int64(len(r.Error)) >= r.ErrorBytes }

// started returns the time at which a round's program started, or 0.
func started(r *tdf.Round) tdf.Time { return max(r.Started, r.Entered[tdf.Running]) }

// endedAt returns the time at which a round ended, or 0.
func endedAt(t *tdf.Task, round int) tdf.Time {
	r := t.Rounds.At(round)
	switch {
	case r.Entered[tdf.Executed] > 0:
		return r.Entered[tdf.Executed]
	case r.TimedOutAt+r.LostAt > 0:
		return max(r.TimedOutAt, r.LostAt)
	case round < t.Round: // it was released
		return t.Rounds.At(round + 1).Entered[tdf.Open]
	}
	return max(r.Entered[tdf.Failed], r.Entered[tdf.TimedOut], r.Entered[tdf.Expired])
}
