package redisstate

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

//go:embed fields.lua
var fieldsSource string

var fieldsScript = redis.NewScript(fieldsSource)

// Bounds of what fields.lua reads in one call, so that it keeps Redis from its other clients for a few ms only.
const (
	// longestField is how long a property may be that is read without being asked for by itself. No valid one is longer
	// but what programs print and report, which is read by [Store.Texts] and its kin.
	longestField  = tdf.MaxInput
	longestFact   = 4 << 10 // the same for a fact of a round: of these a thousand are read at once
	namesPerCall  = 3000
	fieldsPerCall = 1 << 20 // bytes of values
)

// namesAtOnce is how many properties of one task are asked for at once.
const namesAtOnce = 1000

// A question asks for properties of one task.
type question struct {
	task  int // its place among the hashes
	names []string
}

// loadFields reads the properties of each task that names says, and puts those that there are into its hash. A property
// that is too long is left out: for each task the first such one comes back as an error, a *[tdf.PropertyError].
func (s *Store) loadFields(ctx context.Context, ids []int64, hashes []tdf.Hash, names func(i int) []string) (tooLong []error, err error) {
	var asked []question
	for i := range ids {
		for rest := names(i); len(rest) > 0; {
			n := min(len(rest), namesAtOnce)
			asked = append(asked, question{i, rest[:n]})
			rest = rest[n:]
		}
	}
	tooLong = make([]error, len(ids))
	for len(asked) > 0 {
		answers, err := s.askFields(ctx, ids, asked[:questionsPerCall(asked)])
		if err != nil {
			return nil, fmt.Errorf("loading tasks: redis: %w", err)
		}
		for i, answer := range answers {
			q := asked[i]
			if err := q.take(hashes[q.task], list(answer)); err != nil && tooLong[q.task] == nil {
				tooLong[q.task] = err
			}
		}
		asked = asked[len(answers):]
	}
	return tooLong, nil
}

// questionsPerCall returns how many of the questions make up the next call: at least one.
func questionsPerCall(asked []question) int {
	names := 0
	for i, q := range asked {
		if names += len(q.names); i > 0 && names > namesPerCall {
			return i
		}
	}
	return len(asked)
}

// askFields returns the answers to the first of the questions, to one at least.
func (s *Store) askFields(ctx context.Context, ids []int64, asked []question) ([]any, error) {
	keys := make([]string, len(asked))
	numbers := map[string]int{}
	var sets, which []any
	for i, q := range asked {
		keys[i] = s.keys.Task(ids[q.task])
		set := strings.Join(q.names, "\n")
		if numbers[set] == 0 {
			numbers[set] = len(numbers) + 1
			sets = append(sets, len(q.names))
			for _, name := range q.names {
				sets = append(sets, name)
			}
		}
		which = append(which, numbers[set])
	}
	args := append([]any{longestField, longestFact, fieldsPerCall, len(numbers)}, sets...)
	reply, err := s.run(ctx, fieldsScript, keys, append(args, which...))
	if err != nil {
		return nil, err
	}
	answers := list(reply)
	if len(answers) == 0 || len(answers) > len(asked) {
		return nil, fmt.Errorf("the script answered %d questions of %d", len(answers), len(asked))
	}
	return answers, nil
}

// take puts the values of an answer into a hash.
func (q *question) take(h tdf.Hash, values []any) (tooLong error) {
	for i, v := range values {
		switch v := v.(type) {
		case string:
			h[q.names[i]] = v
		case int64:
			if tooLong == nil {
				tooLong = &tdf.PropertyError{Property: q.names[i], Reason: fmt.Sprintf("has %d bytes; at most %d are allowed", v, longestOf(q.names[i]))}
			}
		}
	}
	return tooLong
}

// longestOf returns how long the property may be to be read without being asked for by itself.
func longestOf(name string) int {
	if strings.Contains(name, ":") {
		return longestFact
	}
	return longestField
}
