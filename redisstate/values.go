package redisstate

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/keys"
)

// A ValueKind is a kind of [Value].
type ValueKind string

// The kinds of values.
const (
	ValueSetting ValueKind = "setting" // a setting of the namespace
	ValuePause   ValueKind = "pause"   // a pause of a queue, a group or the namespace
	ValueLimit   ValueKind = "limit"   // the limit of a key
	ValueMark    ValueKind = "group"   // the mark of a group
	ValueStage   ValueKind = "stage"   // the record of a stage of a pipeline
)

// A Value is a value of a namespace that belongs to no task and no program, as Redis holds it.
type Value struct {
	Kind ValueKind
	Name string // for example the limit key, or the name of the group
	Text string
}

// Since returns the time in the mark of a group, or 0.
func (v Value) Since() tdf.Time { return parseMark(v.Text).Since }

// maxValueText is the largest length of the text of a value. It is far above the length of the longest text that TDF writes.
const maxValueText = 2000

// Validate returns an error if no call of this package writes such a value.
func (v Value) Validate() error {
	err := v.check()
	if err == nil && len(v.Text) > maxValueText {
		err = fmt.Errorf("it has %d bytes; at most %d are allowed", len(v.Text), maxValueText)
	}
	if err != nil {
		return fmt.Errorf("%s %.100q: %w", v.Kind, v.Name, err)
	}
	return nil
}

func (v Value) check() error {
	invalid := fmt.Errorf("invalid value %.100q", v.Text)
	switch v.Kind {
	case ValueSetting:
		settings := tdf.DefaultSettings()
		return settings.Change(v.Name, v.Text)
	case ValuePause:
		what, ok := tdf.ParsePausable(v.Name)
		if since, _, _ := strings.Cut(v.Text, " "); !ok || !isTime(since) {
			return invalid
		}
		return what.Check()
	case ValueLimit:
		if limit, ok := tdf.ParseLimit(v.Text); !ok || limit.String() != v.Text {
			return invalid
		}
		return tdf.CheckLimitKey(v.Name)
	case ValueMark:
		mark, since, _ := strings.Cut(v.Text, " ")
		if closed := mark == string(tdf.GroupClosed) || mark == string(tdf.GroupDecided); !closed || !isTime(since) {
			return invalid
		}
		return checkGroup(v.Name)
	case ValueStage:
		if _, err := tdf.ParseStageRecord(v.Text); err != nil || v.Text == "" {
			return invalid
		}
		return checkGroup(v.Name)
	}
	return fmt.Errorf("unknown kind")
}

func isTime(text string) bool {
	t, err := tdf.ParseTime(text)
	return err == nil && t >= 0 && t < tdf.Never
}

func checkGroup(name string) error {
	if name == "" {
		return fmt.Errorf("a group without a name")
	}
	return tdf.Pausable{Group: name}.Check()
}

// key returns the hash that holds the values of a kind.
func (kind ValueKind) key(k keys.Names) string {
	return map[ValueKind]string{
		ValueSetting: k.Settings(), ValuePause: k.Paused(), ValueLimit: k.Limits(), ValueMark: k.Groups(), ValueStage: k.Pipelines(),
	}[kind]
}

// most returns the largest number of values of a kind, or 0 if there is no such number.
func (kind ValueKind) most() int {
	return map[ValueKind]int{ValuePause: tdf.MaxPaused, ValueLimit: tdf.MaxLimits}[kind]
}

// valuesPerCall is the number of values in one call.
const valuesPerCall = 500

// Values returns the values of a kind, in no order. It reads them page by page. Values that change during the call may be
// missing, or may come twice. After an error, the sequence ends.
func (s *Store) Values(ctx context.Context, kind ValueKind) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		err := s.EachField(ctx, "read values of the kind "+string(kind), kind.key(s.Keys), func(name, text string) bool {
			return yield(Value{kind, name, text}, nil)
		})
		if err != nil {
			yield(Value{}, err)
		}
	}
}
