package redisstate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// ErrOtherRequest means that an earlier request with the same name had another content.
var ErrOtherRequest = tdf.NewError(tdf.CodeConflict, "an earlier call with this key had another content; use a new key")

// requestLife is the number of seconds for which Redis keeps the answers to a request.
const requestLife = 24 * 60 * 60

// requestContent is the field that holds the digest of a request. The other fields are call slots.
const requestContent = "content"

// Once returns a context for calls that open tasks. If these calls were made before, with the same name and content and within a day, Redis repeats its
// answers, also if another client made them. It carries out the calls that it has refused, or that were not made. The name must be unknown to others,
// or contain who asks. If the content differs, the error is [ErrOtherRequest].
func (s *Store) Once(ctx context.Context, name, content string) (context.Context, error) {
	key := s.Keys.Calls(name)
	err := s.BestEffort(ctx, "store a request", func(p redis.Pipeliner) {
		p.HSetNX(ctx, key, requestContent, content)
		p.Do(ctx, "EXPIRE", key, strconv.Itoa(requestLife))
	})
	if err != nil {
		return nil, err
	}
	fields, err := conn.Ask(ctx, s.Conn, "read a request", func(r redis.Cmdable) *redis.MapStringStringCmd { return r.HGetAll(ctx, key) })
	if err != nil {
		return nil, err
	}
	if fields[requestContent] != content {
		return nil, fmt.Errorf("open tasks: %w", ErrOtherRequest)
	}
	r := &conn.Request{Name: name, Sequence: map[string]int{}}
	delete(fields, requestContent)
	for slot := range fields {
		number, answer, _ := strings.Cut(fields[slot], "\n")
		r.Sequence[slot], _ = strconv.Atoi(number)
		if hasSucceeded(answer) {
			r.Repeated = true
		} else {
			r.Sequence[slot]++
		}
	}
	return conn.Within(ctx, r), nil
}

// hasSucceeded reports whether the answer of a script says that it has carried out a unit.
func hasSucceeded(answer string) bool {
	return slices.ContainsFunc(strings.Split(answer, "\n"), func(line string) bool { return strings.HasPrefix(line, "+") })
}
