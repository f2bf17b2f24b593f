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

// Summary reports whether the task was read without some of its texts, which are empty then. Task.Unread and
// Round.Unread say which.
func (t *Task) Summary() bool {
	unread := t.Unread
	for _, r := range t.Rounds {
		unread |= r.Unread
	}
	return unread != 0
}

// LastOutput returns what the last finished round printed to stdout, or "". It panics with an error that wraps
// [ErrNotRead] where the task was read without it.
func (t *Task) LastOutput() string { return t.lastRun(TextOutput).Output }

// LastError returns what the last finished round printed to stderr, or why it could not be run, or "". It panics as
// LastOutput does.
func (t *Task) LastError() string { return t.lastRun(TextError).Error }

// LastResult returns the JSON that the last finished round left in result.json, or "" (docs/programs.md, "The round's
// directory"). It panics as LastOutput does.
func (t *Task) LastResult() string { return t.lastRun(TextResult).Result }

// lastRun is the last round that left a result: not one that waits to be run.
func (t *Task) lastRun(text Texts) *Round {
	last := t.Current()
	for _, r := range t.Rounds.All() {
		if r.Output != "" || r.Error != "" || r.Committed {
			last = r
		}
	}
	if last.Unread&text != 0 {
		panic(fmt.Errorf("task %d: its %v %w", t.ID, text, ErrNotRead))
	}
	return last
}
