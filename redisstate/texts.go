package redisstate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tdf-framework/tdf/internal/task"
)

// TextsOf selects texts of a task, or of one of its rounds.
type TextsOf struct {
	Round int // the number of the round, or OfTask for texts of the task itself
	Texts task.Texts
}

// OfTask is the value of TextsOf.Round for texts of the task itself.
const OfTask = -1

// SameTexts returns a value for Want.Texts that selects the same texts of every task.
func SameTexts(of ...TextsOf) func(*task.Task) []TextsOf {
	return func(*task.Task) []TextsOf { return of }
}

// textsOf returns the texts to read of a task.
func (w *Want) textsOf(x *Stored) []TextsOf {
	if x.Task == nil || w.Texts == nil {
		return nil
	}
	var all []TextsOf
	for _, of := range w.Texts(x.Task) { // a text may be searched, and wanted in the answer, too
		if i := slices.IndexFunc(all, func(o TextsOf) bool { return o.Round == of.Round }); i >= 0 {
			all[i].Texts |= of.Texts
		} else {
			all = append(all, of)
		}
	}
	return all
}

// readTexts reads the texts of the first tasks, as many as MaxBytes allows. It returns only these tasks.
func (s *Store) readTexts(ctx context.Context, stored []Stored, want *Want) ([]Stored, error) {
	most := cmp.Or(want.MaxBytes, math.MaxInt)
	found := make([]task.Hash, len(stored))
	var asked []question
	var of []int // for each question, the index of its task
	for i := range stored {
		if want.small != nil && want.small[i] != nil {
			found[i] = want.small[i]
			continue
		}
		found[i] = task.Hash{}
		if names := want.textNames(&stored[i]); len(names) > 0 {
			asked, of = append(asked, question{stored[i].ID, names}), append(of, i)
		}
	}
	answered, err := s.readLong(ctx, asked, most, validLength, func(i int, name, value string, length int) {
		if len(value) < length {
			value = fmt.Sprintf("(%d bytes, too long to be valid)", length)
		}
		found[of[i]][name] = value
	})
	if answered < len(asked) {
		stored = stored[:of[answered]]
	}
	for i := range stored {
		want.takeTexts(&stored[i], found[i])
		most -= stored[i].Bytes
		if i > 0 && most < 0 {
			return stored[:i], err
		}
	}
	return stored, err
}

// textNames returns the names of the texts to read of a task.
func (w *Want) textNames(x *Stored) (names []string) {
	for _, of := range w.textsOf(x) {
		of.each(func(name string, _ textField) { names = append(names, name) })
	}
	return names
}

// takeTexts copies the texts of a hash into the task.
func (w *Want) takeTexts(x *Stored, h task.Hash) {
	for _, of := range w.textsOf(x) {
		of.each(func(name string, f textField) {
			of.put(x.Task, f, h[name])
			x.Bytes += len(h[name])
		})
	}
}

// A textField is a text, the name of its property, and its place in a task.
type textField struct {
	text task.Texts
	name string
	in   func(*task.Task, *task.Round) *string
}

var textFields = []textField{
	{task.TextInput, "input", func(t *task.Task, _ *task.Round) *string { return &t.Input }},
	{task.TextMeta, "meta", func(t *task.Task, _ *task.Round) *string { return &t.Meta }},
	{task.TextLog, "log", func(t *task.Task, _ *task.Round) *string { return &t.Log }},
	{task.TextCheckpoint, task.FieldCheckpoint, func(t *task.Task, _ *task.Round) *string { return &t.Checkpoint }},
	{task.TextOutput, task.RoundOutput, func(_ *task.Task, r *task.Round) *string { return &r.Output }},
	{task.TextError, task.RoundError, func(_ *task.Task, r *task.Round) *string { return &r.Error }},
	{task.TextResult, "result", func(_ *task.Task, r *task.Round) *string { return &r.Result }},
	{task.TextTail, task.RoundTail, func(_ *task.Task, r *task.Round) *string { return &r.Tail }},
	{task.TextFiles, task.RoundFiles, func(_ *task.Task, r *task.Round) *string { return &r.Packed }},
	{task.TextTail, task.RoundTailEnd, func(_ *task.Task, r *task.Round) *string { return &r.TailEnd }},
}

// each calls the function do once per text, with the name of the text's property.
func (of TextsOf) each(do func(name string, f textField)) {
	for _, f := range textFields {
		switch {
		case of.Texts&f.text == 0:
		case of.Round == OfTask:
			do(f.name, f)
		default:
			do(task.RoundField(of.Round, f.name), f)
		}
	}
}

// put stores a text in the task.
func (of TextsOf) put(t *task.Task, f textField, value string) {
	r := t.Rounds.At(of.Round)
	if of.Round == OfTask {
		t.Unread &^= f.text
	} else {
		if t.Rounds[of.Round] == nil { // no facts of this round were read
			r.Unread = task.TextOutput | task.TextError | task.TextResult | task.TextTail
			t.Rounds[of.Round] = r
		}
		r.Unread &^= f.text
	}
	*f.in(t, r) = value
	if f.text == task.TextError {
		r.HasError = value != ""
	}
}
