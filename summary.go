package tdf

import (
	"errors"
	"fmt"
	"strings"
)

// Texts are the properties of a task, and of a round, that may be long, so that not all who read a task read them.
type Texts uint16

// The texts of a task, and those of each of its rounds.
const (
	TextInput Texts = 1 << iota
	TextMeta
	TextLog
	TextCheckpoint

	TextOutput
	TextError
	TextResult
	TextTail

	taskTexts  = TextInput | TextMeta | TextLog | TextCheckpoint
	roundTexts = TextOutput | TextError | TextResult | TextTail
)

// textNames are in the order of the constants.
var textNames = []string{fieldInput, fieldMeta, fieldLog, FieldCheckpoint, RoundOutput, RoundError, roundResult, RoundTail}

// String returns the names of the texts.
func (x Texts) String() string {
	var names []string
	for i, name := range textNames {
		if x&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// ErrNotRead says that a text was asked for of a task that was read without it.
var ErrNotRead = errors.New("was not read: read the whole task")

// ParseSummary is [ParseTask] for a task that is read without its texts: all of them are Unread.
func ParseSummary(id int64, h Hash) (*Task, error) {
	t, err := ParseTask(id, h)
	t.Unread = taskTexts
	for _, r := range t.Rounds {
		r.Unread = roundTexts
	}
	return t, err
}

// IsSummary reports whether the task was read without some of its texts, which are empty then. Task.Unread and
// Round.Unread say which.
func (t *Task) IsSummary() bool {
	unread := t.Unread
	for _, r := range t.Rounds {
		unread |= r.Unread
	}
	return unread != 0
}

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
