package redisstate

import (
	"context"
	"encoding/gob"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// The keys of the records of stages, of stored definitions, and of periodic tasks.
const pipelines, definitionsOf, periodics = "pipelines", "definitions:", "periodic"

// maxValueText is the largest length of the text of a value. It is far above the length of the longest text that TDF
// writes.
const maxValueText = 2000

// CheckField returns an error if no call of this package writes such a field. The hash is one of those that a dump has
// besides the tasks; key is its name without the namespace.
func CheckField(key, name, text string) error {
	if stored, are := strings.CutPrefix(key, definitionsOf); are {
		return checkDefinitions(stored, name, text)
	}
	if key == periodics {
		return checkPeriodic(name, text)
	}
	err := checkField(key, name, text)
	if err == nil && len(text) > maxValueText {
		err = fmt.Errorf("it has %d bytes; at most %d are allowed", len(text), maxValueText)
	}
	if err != nil {
		return fmt.Errorf("%.100q in %s: %w", name, key, err)
	}
	return nil
}

func checkField(key, name, text string) error {
	invalid := fmt.Errorf("invalid value %.100q", text)
	switch key {
	case "settings":
		settings := tdf.DefaultSettings()
		return settings.Change(name, text)
	case "paused":
		what, ok := tdf.ParsePausable(name)
		if since, _, _ := strings.Cut(text, " "); !ok || !isTime(since) {
			return invalid
		}
		return what.Check()
	case "limits":
		if limit, ok := tdf.ParseLimit(text); !ok || limit.String() != text {
			return invalid
		}
		return tdf.CheckLimitKey(name)
	case "groups":
		mark, since, _ := strings.Cut(text, " ")
		known := slices.Contains([]tdf.GroupMark{tdf.GroupOpen, tdf.GroupClosed, tdf.GroupDecided}, tdf.GroupMark(mark))
		if !known || !isTime(since) {
			return invalid
		}
		return checkGroup(name)
	case pipelines:
		if _, err := tdf.ParseStageRecord(text); err != nil || text == "" {
			return invalid
		}
		return checkGroup(name)
	}
	return fmt.Errorf("unknown key")
}

// checkDefinitions checks a chunk of stored definitions. Only a name and a chunk that a record of a stage can have are
// valid.
func checkDefinitions(stored, chunk, text string) error {
	record, err := tdf.ParseStageRecord(fmt.Sprintf("stored %s %d %s", chunk, math.MaxInt, stored))
	if err != nil || record.Stored == "" || record.Programs != "" || len(stored) > tdf.MaxName {
		return fmt.Errorf("definitions %.100q, chunk %.100q: invalid name or number", stored, chunk)
	}
	if _, err := decodeDefinitions(text); err != nil {
		return fmt.Errorf("definitions %s, chunk %s: %w", stored, chunk, err)
	}
	return nil
}

func checkPeriodic(name, text string) error {
	r, err := tdf.ParsePeriodic(name, text)
	if err != nil {
		return err
	}
	if err := tdf.ValidateAll(r.Properties()); err != nil {
		return fmt.Errorf("periodic %.100q: %w", name, err)
	}
	return nil
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

// mostFields has the largest number of fields of the hashes that have such a number.
var mostFields = map[string]int{"paused": tdf.MaxPaused, "limits": tdf.MaxLimits, periodics: tdf.MaxPeriodics}

// FieldsPerCall is the largest number of fields in one call of RestoreFields.
const FieldsPerCall = 500

// Fields passes the fields of a hash to a function, until it returns false, as EachField does. key is the name of the
// hash without the namespace.
func (s *Store) Fields(ctx context.Context, key string, f func(name, text string) bool) error {
	return s.EachField(ctx, "read "+key, s.Keys.Key(key), f)
}

// RestoreFields writes fields of a dump that [CheckField] accepts. It changes no existing field, so it may be repeated
// after an error. It returns why it has not restored fields, by their names. If there would be too many fields,
// RestoreFields writes nothing, and returns an error. If Redis has reached its maxmemory, the error wraps [ErrFull].
func (s *Store) RestoreFields(ctx context.Context, key string, fields tdf.Hash) (kept map[string]string, err error) {
	keys, e := []string{s.Keys.Key(key), s.Keys.Partitions()}, &conn.Args{}
	e.Count(mostFields[key])
	e.Flag(key == "paused")
	names := slices.Sorted(maps.Keys(fields))
	for _, name := range names {
		e.Add(name, fields[name])
		if key == "groups" {
			keys = append(keys, s.Keys.Group(name))
		}
	}
	reply, err := s.Run(ctx, "restore "+key, lua.RestoreValues, keys, e.All, func(reply any) bool {
		return reply == "" || conn.IsText(reply) && len(conn.Text(reply)) == len(names)
	})
	if err != nil {
		return nil, err
	}
	if reply == "" && len(names) > 0 {
		return nil, fmt.Errorf("restore %s: there would be more than %d of them; remove some", key, mostFields[key])
	}
	kept = map[string]string{}
	for i, answer := range conn.Text(reply) {
		switch answer {
		case '-':
			kept[names[i]] = "the namespace has another value, which it keeps"
		case '?':
			kept[names[i]] = "the group has no tasks, so it is not closed"
		}
	}
	return kept, nil
}

// EncodedDefinitions returns a chunk of stored definitions as Redis holds it, or "" if it does not exist.
func (s *Store) EncodedDefinitions(ctx context.Context, name string, chunk int) (encoded string, err error) {
	return conn.Ask(ctx, s.Conn, "read stored definitions", func(r redis.Cmdable) *redis.StringCmd {
		return r.HGet(ctx, s.Keys.Definitions(name), strconv.Itoa(chunk))
	})
}

// maxDefinitions is the largest size in bytes of a chunk of stored definitions. No call stores a larger chunk.
const maxDefinitions = 4 * maxBytesPerCall

// decodeDefinitions returns the definitions of a chunk. It returns an error if no manager stores such definitions.
func decodeDefinitions(encoded string) ([]tdf.Properties, error) {
	if len(encoded) > maxDefinitions {
		return nil, fmt.Errorf("stored definitions have %d bytes; at most %d are allowed", len(encoded), maxDefinitions)
	}
	var definitions []tdf.Properties
	if err := gob.NewDecoder(strings.NewReader(encoded)).Decode(&definitions); err != nil {
		return nil, fmt.Errorf("read stored definitions: %w", err)
	}
	return definitions, tdf.ValidateAll(definitions)
}
