package listing

import (
	"context"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// A Text is a text of a task: of one of its rounds, or, with the round -1, of itself.
type Text struct {
	Round int
	What  string
}

func (x Text) name() string {
	if x.Round < 0 {
		return x.What
	}
	return tdf.RoundField(x.Round, x.What)
}

// put takes the text into the task.
func (x Text) put(t *tdf.Task, text string) {
	r := t.Rounds.At(x.Round)
	if x.Round >= 0 && t.Rounds[x.Round] == nil { // it may have texts without facts
		r.Unread = tdf.TextOutput | tdf.TextError | tdf.TextResult | tdf.TextTail
		t.Rounds[x.Round] = r
	}
	switch x.What {
	case "input":
		t.Input, t.Unread = text, t.Unread&^tdf.TextInput
	case "meta":
		t.Meta, t.Unread = text, t.Unread&^tdf.TextMeta
	case tdf.RoundOutput:
		r.Output, r.Unread = text, r.Unread&^tdf.TextOutput
	case tdf.RoundError:
		r.Error, r.HasError, r.Unread = text, text != "", r.Unread&^tdf.TextError
	case tdf.RoundTail:
		r.Tail, r.Unread = text, r.Unread&^tdf.TextTail
	case "result":
		r.Result, r.Unread = text, r.Unread&^tdf.TextResult
	}
}

var OfTask = []Text{{-1, "input"}, {-1, "meta"}}

// Fill reads texts of tasks, up to so many bytes, and returns how many of the tasks have theirs.
func Fill(ctx context.Context, s Store, tasks []*tdf.Task, texts func(*tdf.Task) []Text, most int64) (filled int, bytes int64, err error) {
	of := make([]redisstate.TextsOf, len(tasks))
	for i, t := range tasks {
		of[i].ID = t.ID
		for _, text := range texts(t) {
			of[i].Names = append(of[i].Names, text.name())
		}
	}
	read, err := s.Texts(ctx, of, most)
	for i, values := range read {
		for j, text := range texts(tasks[i]) {
			text.put(tasks[i], values[j])
			bytes += int64(len(values[j]))
		}
	}
	return len(read), bytes, err
}
