package task

import (
	"strings"
)

// Texts is a set of properties of a task or a round whose values may be long. A summary of a task does not contain
// these texts.
type Texts uint16

// The first four texts belong to the task, and the others to a round. TextFiles is read only if it is asked for by
// name: neither a summary nor a whole task has it.
const (
	TextInput Texts = 1 << iota
	TextMeta
	TextLog
	TextCheckpoint

	TextOutput
	TextError
	TextResult
	TextTail
	TextFiles

	taskTexts  = TextInput | TextMeta | TextLog | TextCheckpoint
	roundTexts = TextOutput | TextError | TextResult | TextTail
)

// textNames are the names of the texts in Redis, in the order of the constants above.
var textNames = []string{
	fieldInput, fieldMeta, fieldLog, FieldCheckpoint, RoundOutput, RoundError, RoundResult,
	RoundTail, RoundFiles,
}

// String returns the names of the texts, separated by commas.
func (x Texts) String() string {
	var names []string
	for i, name := range textNames {
		if x&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// ParseSummary does the same as [ParseTask] for a hash that was read without the texts of the task. It marks all texts
// as Unread.
func ParseSummary(id int64, h Hash) (*Task, error) {
	t, err := ParseTask(id, h)
	t.Unread = taskTexts
	for _, r := range t.Rounds {
		r.Unread = roundTexts
	}
	return t, err
}
