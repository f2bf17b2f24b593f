package tdf

import "fmt"

// LastRun returns the number of the round that ran last. Usually this is the current round. It is the previous round if
// the task is open, expired or cancelled, and no worker has claimed the current round. LastRun returns 0 if the task
// never ran.
func (t *Task) LastRun() int {
	if t.Current().Worker == "" && t.Round > 0 && t.mayLackClaim() {
		return t.Round - 1
	}
	return t.Round
}

// mayLackClaim reports whether a task can reach this state and outcome without a claim in the current round.
func (t *Task) mayLackClaim() bool {
	return t.State == Open || t.State == Expired || t.State == Archived && (t.Outcome == string(Expired) || t.Outcome == Cancelled)
}

// LastOutput returns the text that the last run ([Task.LastRun]) printed to stdout. It returns "" while the round runs. It
// panics with an error that wraps [ErrNotRead] if the text was not read.
func (t *Task) LastOutput() string { return t.lastRun(TextOutput).Output }

// LastError returns the text that the last run printed to stderr, or the reason why the program could not be run. It
// panics like [Task.LastOutput] if the text was not read.
func (t *Task) LastError() string { return t.lastRun(TextError).Error }

// LastResult returns the content of the last run's result.json, or "" if there is none (docs/programs.md, "The round's
// directory"). It panics like [Task.LastOutput] if the text was not read.
func (t *Task) LastResult() string { return t.lastRun(TextResult).Result }

func (t *Task) lastRun(text Texts) *Round {
	last := t.Rounds.At(t.LastRun())
	if last.Unread&text != 0 {
		panic(fmt.Errorf("get the %v of task %d: %w", text, t.ID, ErrNotRead))
	}
	return last
}
