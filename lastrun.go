package tdf

import "fmt"

// LastRun returns the number of the round that ran last: the current one, unless the task waits in it for a worker, or
// expired or was cancelled while it waited; then the one before. It is 0 for a task that never ran.
func (t *Task) LastRun() int {
	if t.Current().Worker == "" && t.Round > 0 && t.mayLackClaim() {
		return t.Round - 1
	}
	return t.Round
}

// unclaimed reports whether a task may be in its state, or have its outcome, without a claim of its current round.
func (t *Task) mayLackClaim() bool {
	return t.State == Open || t.State == Expired || t.State == Archived && (t.Outcome == string(Expired) || t.Outcome == Cancelled)
}

// LastOutput returns what the last run ([Task.LastRun]) printed to stdout, or "", also while it runs. It panics with an
// error that wraps [ErrNotRead] if the task was read without it.
func (t *Task) LastOutput() string { return t.lastRun(TextOutput).Output }

// LastError returns what the last run printed to stderr, or why it could not be run, or "". It panics as LastOutput
// does.
func (t *Task) LastError() string { return t.lastRun(TextError).Error }

// LastResult returns the JSON that the last run left in result.json, or "" (docs/programs.md, "The round's
// directory"). It panics as LastOutput does.
func (t *Task) LastResult() string { return t.lastRun(TextResult).Result }

func (t *Task) lastRun(text Texts) *Round {
	last := t.Rounds.At(t.LastRun())
	if last.Unread&text != 0 {
		panic(fmt.Errorf("task %d: its %v %w", t.ID, text, ErrNotRead))
	}
	return last
}
