package redisstate

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf"
)

// Limits for one call of fields.lua, so that other clients of Redis wait only a few milliseconds.
const (
	namesPerCall  = 3000
	fieldsPerCall = 1 << 20 // bytes of values
)

// namesAtOnce is the largest number of properties in one question.
const namesAtOnce = 1000

// lengthOf is a prefix of a property's name. With this prefix, fields.lua returns the length of the property's value.
const lengthOf = "?"

// A question asks for properties of one task.
type question struct {
	at    int // the task's index among the tasks that are read
	id    int64
	names []string
}

// readFields reads properties of tasks into their hashes. The function names returns the names of the properties to
// read of task i. Properties that are too long are left out. For a task with a property that is too long, tooLong gets
// a *[tdf.PropertyError].
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

// questionsPerCall returns how many of the questions fit into the next call. It returns at least 1.
func questionsPerCall(asked []question) int {
	return batch(len(asked), bound{namesPerCall, func(i int) int { return len(asked[i].names) }})
}

// askFields sends questions, and returns the answers to the first of them. Redis may leave out the last questions, but
// answers at least one.
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
	reply, err := s.run(ctx, readTasks, fieldsScript, keys, append(args, which...), answersTo(asked))
	if err != nil {
		return nil, err
	}
	return list(reply), nil
}

// answersTo is the form of the answers to the first questions: at least one, with at most one value for each name.
func answersTo(asked []question) replyForm {
	answers := listOf(1, len(asked), listOf(0, namesAtOnce, anything))
	return func(reply any) bool {
		if !answers(reply) {
			return false
		}
		for i, answer := range list(reply) {
			if len(list(answer)) > len(asked[i].names) {
				return false
			}
		}
		return true
	}
}

// take adds the values of an answer to a hash. It stores the length of a property under the property's name with the
// prefix lengthOf.
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
