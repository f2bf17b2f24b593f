package redisstate

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf"
)

//go:embed fields.lua
var fieldsSource string

var fieldsScript = newScript(fieldsSource)

// Bounds of one call of fields.lua, so that it keeps Redis from its other clients for a few ms only.
const (
	namesPerCall  = 3000
	fieldsPerCall = 1 << 20 // bytes of values
)

// namesAtOnce is how many properties of one task are read at once.
const namesAtOnce = 1000

// lengthOf before the name of a property asks fields.lua for the length of its value.
const lengthOf = "?"

// A question asks for properties of one task.
type question struct {
	at    int // the task's index among those that are read
	id    int64
	names []string
}

// readFields reads the properties of each task that names returns, and adds those that exist to its hash. A property
// that is too long is left out. tooLong gets the first of them for each task, as a *[tdf.PropertyError].
func (s *Store) readFields(ctx context.Context, ids []int64, hashes []tdf.Hash, tooLong []error, names func(i int) []string) error {
	var asked []question
	for i, id := range ids {
		for rest := names(i); len(rest) > 0; {
			n := min(len(rest), namesAtOnce)
			asked = append(asked, question{i, id, rest[:n]})
			rest = rest[n:]
		}
	}
	for len(asked) > 0 {
		answers, err := s.askFields(ctx, asked[:questionsPerCall(asked)])
		if err != nil {
			return err
		}
		for i, answer := range answers {
			q := asked[i]
			if err := q.take(hashes[q.at], list(answer)); err != nil && tooLong[q.at] == nil {
				tooLong[q.at] = err
			}
		}
		asked = asked[len(answers):]
	}
	return nil
}

// questionsPerCall returns how many of the questions make up the next call: at least one.
func questionsPerCall(asked []question) int {
	return batch(len(asked), bound{namesPerCall, func(i int) int { return len(asked[i].names) }})
}

// askFields returns the answers to the first of the questions, to one at least.
func (s *Store) askFields(ctx context.Context, asked []question) ([]any, error) {
	keys := make([]string, len(asked))
	numbers := map[string]int{}
	var sets, which []any
	for i, q := range asked {
		keys[i] = s.keys.Task(q.id)
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

// take adds the values of an answer to a hash, and also the lengths, under the names that asked for them.
func (q *question) take(h tdf.Hash, values []any) (tooLong error) {
	for i, v := range values {
		name := q.names[i]
		switch v := v.(type) {
		case string:
			h[name] = v
		case int64:
			switch {
			case !strings.HasPrefix(name, lengthOf):
				tooLong = firstError(tooLong, tooLongError(name, v))
			case v > 0:
				h[name] = strconv.FormatInt(v, 10)
			}
		}
	}
	return tooLong
}

func firstError(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

func tooLongError(name string, length int64) error {
	return &tdf.PropertyError{Property: name, Reason: fmt.Sprintf("has %d bytes; at most %d are allowed", length, validLength(name))}
}
