package redisstate

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// A ValueOutcome says what [Store.RestoreValues] has done with a value.
type ValueOutcome int

// The outcomes.
const (
	ValueRestored ValueOutcome = iota // the namespace has the value now
	ValueKept                         // the namespace has another value of this kind and name, which stays
	ValueNoGroup                      // the group has no tasks, so it gets no mark
)

// RestoreValues writes values of a dump, all of one kind. It changes no existing value, so it may be repeated after an error.
// The outcomes have the order of the values. If a value is invalid, or if there would be too many values of the kind,
// RestoreValues writes nothing more, and returns an error. If Redis has reached its maxmemory, the error wraps [ErrFull].
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

// EncodedDefinitions returns a chunk of stored definitions as Redis holds it, or nil if it does not exist or is too large.
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
	return s.BestEffort(ctx, "keep stored definitions", func(p redis.Pipeliner) { p.Persist(ctx, s.Keys.Definitions(name)) })
}
