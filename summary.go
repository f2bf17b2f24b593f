package tdf

import (
	"errors"
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
