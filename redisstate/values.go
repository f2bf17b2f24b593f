package redisstate

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/keys"
	"github.com/tdf-framework/tdf/redisstate/lua"
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

// maxValueText is the largest length of the text of a value. It is far above the length of the longest text that TDF
// writes.
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
		known := slices.Contains([]tdf.GroupMark{tdf.GroupOpen, tdf.GroupClosed, tdf.GroupDecided}, tdf.GroupMark(mark))
		if !known || !isTime(since) {
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
		ValueSetting: k.Settings(), ValuePause: k.Paused(), ValueLimit: k.Limits(), ValueMark: k.Groups(),
		ValueStage: k.Pipelines(),
	}[kind]
}

// most returns the largest number of values of a kind, or 0 if there is no such number.
func (kind ValueKind) most() int {
	return map[ValueKind]int{ValuePause: tdf.MaxPaused, ValueLimit: tdf.MaxLimits}[kind]
}

// valuesPerCall is the number of values in one call.
const valuesPerCall = 500

// Values returns the values of a kind, in no order. It reads them page by page. Values that change during the call may
// be missing, or may come twice. After an error, the sequence ends.
func (s *Store) Values(ctx context.Context, kind ValueKind) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		err := s.EachField(ctx, "read values of the kind "+string(kind), kind.key(s.Keys),
			func(name, text string) bool {
				return yield(Value{kind, name, text}, nil)
			})
		if err != nil {
			yield(Value{}, err)
		}
	}
}

// A ValueOutcome says what [Store.RestoreValues] has done with a value.
type ValueOutcome int

// The outcomes.
const (
	ValueRestored ValueOutcome = iota // the namespace has the value now
	ValueKept                         // the namespace has another value of this kind and name, which stays
	ValueNoGroup                      // the group has no tasks, so it gets no mark
)

// RestoreValues writes values of a dump, all of one kind. It changes no existing value, so it may be repeated after an
// error. The outcomes have the order of the values. If a value is invalid, or if there would be too many values of the
// kind, RestoreValues writes nothing more, and returns an error. If Redis has reached its maxmemory, the error wraps
// [ErrFull].
func (s *Store) RestoreValues(ctx context.Context, values ...Value) ([]ValueOutcome, error) {
	for _, v := range values {
		if err := v.Validate(); err != nil {
			return nil, err
		}
	}
	var outcomes []ValueOutcome
	for len(values) > 0 {
		n := min(len(values), valuesPerCall)
		some, err := s.restoreValues(ctx, values[0].Kind, values[:n])
		if outcomes = append(outcomes, some...); err != nil {
			return outcomes, err
		}
		values = values[n:]
	}
	return outcomes, nil
}

func (s *Store) restoreValues(ctx context.Context, kind ValueKind, values []Value) ([]ValueOutcome, error) {
	keys := []string{kind.key(s.Keys), s.Keys.Partitions()}
	sums := map[string]bool{}
	for _, v := range values {
		if kind == ValueStage {
			record, _ := tdf.ParseStageRecord(v.Text)
			for _, sum := range record.StoredPrograms() {
				sums[sum] = true
			}
		}
	}
	if err := s.namePrograms(ctx, sums); err != nil {
		return nil, err
	}
	e := &conn.Args{}
	e.Count(kind.most())
	e.Flag(kind == ValuePause)
	for _, v := range values {
		e.Add(v.Name, v.Text)
		if kind == ValueMark {
			keys = append(keys, s.Keys.Group(v.Name))
		}
	}
	doing := "restore values of the kind " + string(kind)
	reply, err := s.Run(ctx, doing, lua.RestoreValues, keys, e.All, func(reply any) bool {
		return reply == "" || conn.IsText(reply) && len(conn.Text(reply)) == len(values)
	})
	if err != nil {
		return nil, err
	}
	answers := conn.Text(reply)
	if answers == "" {
		return nil, fmt.Errorf("%s: the namespace would have more than %d of them; remove some", doing, kind.most())
	}
	outcomes := make([]ValueOutcome, len(answers))
	for i, answer := range answers {
		outcomes[i] = map[rune]ValueOutcome{'-': ValueKept, '?': ValueNoGroup}[answer]
	}
	return outcomes, nil
}

// MaxDefinitions is the largest size in bytes of a chunk of stored definitions. No call stores a larger chunk.
const MaxDefinitions = 4 * maxBytesPerCall

// DefinitionChunks returns the number of chunks of stored definitions.
func (s *Store) DefinitionChunks(ctx context.Context, name string) (int, error) {
	var chunks *redis.IntCmd
	err := s.Pipeline(ctx, readDefinitions, func(p redis.Pipeliner) { chunks = p.HLen(ctx, s.Keys.Definitions(name)) })
	if err != nil {
		return 0, err
	}
	return int(chunks.Val()), nil
}

// EncodedDefinitions returns a chunk of stored definitions as Redis holds it, or nil if it does not exist or is too
// large.
func (s *Store) EncodedDefinitions(ctx context.Context, name string, chunk int) ([]byte, error) {
	encoded, err := s.definitions(ctx, name, chunk)
	switch {
	case err != nil && !conn.IsWrongType(err):
		return nil, err
	case encoded == "", len(encoded) > MaxDefinitions:
		return nil, nil
	}
	return []byte(encoded), nil
}

const readDefinitions = "read stored definitions"

// definitions returns a chunk of stored definitions, or "" if it does not exist.
func (s *Store) definitions(ctx context.Context, name string, chunk int) (encoded string, err error) {
	return conn.Ask(ctx, s.Conn, readDefinitions, func(r redis.Cmdable) *redis.StringCmd {
		return r.HGet(ctx, s.Keys.Definitions(name), strconv.Itoa(chunk))
	})
}

// DecodeDefinitions returns the definitions of a chunk. It returns an error if no manager stores such definitions.
func DecodeDefinitions(encoded []byte) ([]tdf.Properties, error) {
	if len(encoded) > MaxDefinitions {
		return nil, fmt.Errorf("stored definitions have %d bytes; at most %d are allowed", len(encoded), MaxDefinitions)
	}
	var definitions []tdf.Properties
	if err := gob.NewDecoder(bytes.NewReader(encoded)).Decode(&definitions); err != nil {
		return nil, fmt.Errorf("read stored definitions: %w", err)
	}
	return definitions, tdf.ValidateAll(definitions)
}

// KeepDefinitions makes stored definitions permanent, as a [StageChange] does.
func (s *Store) KeepDefinitions(ctx context.Context, name string) error {
	return s.BestEffort(ctx, "keep stored definitions",
		func(p redis.Pipeliner) { p.Persist(ctx, s.Keys.Definitions(name)) })
}
