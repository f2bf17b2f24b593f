package redisstate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
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
	id    int64
	names []string
}

// readFields reads properties of tasks into their hashes. The function names returns the names of the properties to
// read of task i. Properties that are too long are left out. For a task with a property that is too long, tooLong gets
// a *[task.PropertyError].
func (s *Store) readFields(ctx context.Context, ids []int64, hashes []task.Hash, tooLong []error,
	names func(i int) []string,
) error {
	var asked []question
	var of []int // for each question, the index of its task
	for i, id := range ids {
		for some := range slices.Chunk(names(i), namesAtOnce) {
			asked, of = append(asked, question{id, some}), append(of, i)
		}
	}
	return s.eachAnswer(ctx, asked, false, func(i int, values []any) bool {
		err := asked[i].take(hashes[of[i]], values)
		if tooLong[of[i]] == nil {
			tooLong[of[i]] = err
		}
		return true
	})
}

// readLong answers the first questions: as many as the maximum number of bytes allows, but at least one. It returns the
// number of answered questions. It calls the function put for each property that exists, with the property's
// value and length. The function limit returns the maximum length of a property. If a property is longer, put gets only
// its length. One reply of Redis has at most a few MiB. The account of the context is charged for the values before the
// long ones are read.
func (s *Store) readLong(ctx context.Context, asked []question, most int, limit func(name string) int,
	put func(i int, name, value string, length int),
) (n int, err error) {
	if !slices.ContainsFunc(asked, func(q question) bool { return len(q.names) > 0 }) {
		return len(asked), nil
	}
	var long []longValue
	var full error
	err = s.eachAnswer(ctx, asked, true, func(i int, values []any) bool {
		size := 0
		for j, v := range values {
			if length := len(conn.Text(v)) + conn.Number(v); length <= limit(asked[i].names[j]) {
				size += length
			}
		}
		if i > 0 && size > most {
			return false
		}
		if full = pool.Take(ctx, int64(size)); full != nil {
			return false
		}
		n, most = n+1, most-size
		for j, v := range values {
			name, length := asked[i].names[j], conn.Number(v)
			switch {
			case conn.IsText(v):
				put(i, name, conn.Text(v), len(conn.Text(v)))
			case length > limit(name):
				put(i, name, "", length)
			case length > 0:
				long = append(long, longValue{i, name, length})
			}
		}
		return true
	})
	if err == nil {
		err = full
	}
	for err == nil && len(long) > 0 {
		some := long[:conn.Batch(len(long), conn.Bound{Limit: readAtOnce, Amount: func(i int) int {
			return long[i].length
		}})]
		var values []*redis.StringCmd
		values, err = conn.AskEach(ctx, s.Conn, readTasks, some, func(p redis.Pipeliner, v longValue) *redis.StringCmd {
			return p.HGet(ctx, s.Keys.Task(asked[v.of].id), v.name)
		})
		for i, value := range values {
			if value.Err() == nil {
				put(some[i].of, some[i].name, value.Val(), len(value.Val()))
			}
		}
		long = long[len(some):]
	}
	return n, err
}

// A longValue is a property that is too long for fields.lua, but valid.
type longValue struct {
	of     int // the index of the question
	name   string
	length int
}

// readAtOnce is the largest number of bytes in one reply, unless a single property is longer.
const readAtOnce = 4 << 20

// eachAnswer passes the answers to questions to a function, in order, until it returns false. The values in an answer
// are as fields.lua describes them. If long values are usual, the script reads no value without its length.
func (s *Store) eachAnswer(ctx context.Context, asked []question, long bool,
	take func(i int, values []any) bool,
) error {
	for done := 0; done < len(asked); {
		rest := asked[done:]
		answers, err := s.askFields(ctx, rest[:questionsPerCall(rest)], long)
		if err != nil {
			return err
		}
		for _, answer := range answers {
			if !take(done, conn.List(answer)) {
				return nil
			}
			done++
		}
	}
	return nil
}

// questionsPerCall returns how many of the questions fit into the next call. It returns at least 1.
func questionsPerCall(asked []question) int {
	return conn.Batch(len(asked), conn.Bound{Limit: namesPerCall, Amount: func(i int) int {
		return len(asked[i].names)
	}})
}

// askFields sends questions, and returns the answers to the first of them. Redis may leave out the last questions, but
// answers at least one.
func (s *Store) askFields(ctx context.Context, asked []question, long bool) ([]any, error) {
	keys := make([]string, len(asked))
	numbers := map[string]int{}
	var sets conn.Args
	var which []any
	for i, q := range asked {
		keys[i] = s.Keys.Task(q.id)
		set := strings.Join(q.names, "\n")
		if numbers[set] == 0 {
			numbers[set] = len(numbers) + 1
			sets.Strings(q.names)
		}
		which = append(which, numbers[set])
	}
	head := &conn.Args{All: []any{longestField, longestFact, fieldsPerCall}}
	head.Flag(long)
	head.Count(len(numbers))
	reply, err := s.Conn.Run(ctx, readTasks, lua.Fields, keys, slices.Concat(head.All, sets.All, which), answersTo(asked))
	return conn.List(reply), err
}

// answersTo is the form of the answers to the first questions: at least one, with at most one value for each name.
func answersTo(asked []question) conn.ReplyForm {
	answers := conn.ListOf(1, len(asked), conn.ListOf(0, namesAtOnce, conn.Anything))
	return func(reply any) bool {
		if !answers(reply) {
			return false
		}
		for i, answer := range conn.List(reply) {
			if len(conn.List(answer)) > len(asked[i].names) {
				return false
			}
		}
		return true
	}
}

// take adds the values of an answer to a hash. It stores the length of a property under the property's name with the
// prefix lengthOf.
func (q *question) take(h task.Hash, values []any) (tooLong error) {
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
	return &task.PropertyError{Property: name, Reason: fmt.Sprintf("has %d bytes; at most %d are allowed", length,
		validLength(name))}
}
