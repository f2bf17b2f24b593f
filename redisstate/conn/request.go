package conn

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/keys"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// A request has call slots of its own, which any client can use again: if a client makes the same calls in the same
// order, Redis repeats the answers. Its calls must not run at the same time.
type request struct {
	Name     string         // part of the name of the key in Redis
	Sequence map[string]int // the sequence number of the next call in each call slot, if it is not 1
	Repeated bool           // Redis has carried out a call of the request before

	// Answered has the call slots whose next call Redis has carried out before, so that it only repeats the answer.
	Answered map[string]bool

	slot int
}

type requestKey struct{}

// InRequest reports whether the context belongs to a request.
func InRequest(ctx context.Context) bool {
	_, ok := ctx.Value(requestKey{}).(*request)
	return ok
}

// IsRepeated reports whether the context belongs to a request that was carried out before, at least in part.
func IsRepeated(ctx context.Context) bool {
	r, ok := ctx.Value(requestKey{}).(*request)
	return ok && r.Repeated
}

// CallIsRepeated reports whether the last call with the context belongs to a request, and was carried out before, so
// that its effects have been counted.
func CallIsRepeated(ctx context.Context) bool {
	r, ok := ctx.Value(requestKey{}).(*request)
	return ok && r.slot > 0 && r.Answered[strconv.Itoa(r.slot-1)]
}

// next returns the keys of the next call, its call slot and its sequence number. The first key has the answers.
func (r *request) next(k keys.Names, of []string) (all []string, slot string, sequence uint64) {
	all, slot = slices.Clone(of), strconv.Itoa(r.slot)
	all[0] = k.Calls(r.Name)
	r.slot++
	return all, slot, uint64(max(1, r.Sequence[slot]))
}

// ErrOtherRequest means that an earlier request with the same name had another content.
var ErrOtherRequest = task.NewError(task.CodeConflict,
	"an earlier call with this key had another content; use a new key")

// requestLife is the number of seconds for which Redis keeps the answers to a request.
const requestLife = 24 * 60 * 60

// requestContent is the field that holds the digest of a request. The other fields are call slots.
const requestContent = "content"

// Once returns a context for calls that open tasks. If these calls were made before, with the same name and content and
// within a day, Redis repeats its answers, also if another client made them. It carries out the calls that it has
// refused, or that were not made. The name must be unknown to others, or contain who asks. If the content differs, the
// error is [ErrOtherRequest]. Before Redis stores a new request, Once calls check, and returns its error. A full Redis
// stores none. The caller must call [Conn.Unrequest] for a request that Redis has refused.
func (s *Conn) Once(ctx context.Context, name, content string, check func() error) (context.Context, error) {
	fields, err := s.request(ctx, s.Keys.Calls(name), content, check)
	if err != nil {
		return nil, err
	}
	if fields[requestContent] != content {
		return nil, fmt.Errorf("open tasks: %w", ErrOtherRequest)
	}
	r := &request{Name: name, Sequence: map[string]int{}, Answered: map[string]bool{}}
	delete(fields, requestContent)
	for slot := range fields {
		number, answer, _ := strings.Cut(fields[slot], "\n")
		r.Sequence[slot], _ = strconv.Atoi(number)
		if hasSucceeded(answer) {
			r.Repeated, r.Answered[slot] = true, true
		} else {
			r.Sequence[slot]++
		}
	}
	return context.WithValue(ctx, requestKey{}, r), nil
}

// request returns the fields of a request. It stores a new request, if the function check allows it.
func (s *Conn) request(ctx context.Context, key, content string, check func() error) (map[string]string, error) {
	read := func() (map[string]string, error) {
		return Ask(ctx, s, "read a request", func(r redis.Cmdable) *redis.MapStringStringCmd {
			return r.HGetAll(ctx, key)
		})
	}
	fields, err := read()
	if err != nil || fields[requestContent] != "" {
		return fields, err
	}
	if err := check(); err != nil {
		return nil, err
	}
	commands := []any{"HSETNX", 2, requestContent, content, "EXPIRE", 1, requestLife}
	if _, err := s.Run(ctx, "store a request", lua.Storing, []string{key, key}, commands, Anything); err != nil {
		return nil, err
	}
	return read() // another client may have stored the request meanwhile
}

// Unrequest removes what [Conn.Once] has stored of a request, unless a call of it has succeeded.
func (s *Conn) Unrequest(ctx context.Context, name string) error {
	_, err := s.Run(ctx, "remove a request", lua.Unrequest, []string{s.Keys.Calls(name)}, nil, IsText)
	return err
}

// hasSucceeded reports whether the answer of a script says that it has carried out a unit.
func hasSucceeded(answer string) bool {
	return slices.ContainsFunc(strings.Split(answer, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "+")
	})
}
