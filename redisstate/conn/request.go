package conn

import (
	"context"
	"slices"
	"strconv"

	"github.com/tdf-framework/tdf/redisstate/keys"
)

// A Request has call slots of its own, which any client can use again: if a client makes the same calls in the same order, Redis repeats the answers.
// Its calls must not run at the same time.
type Request struct {
	Name     string         // part of the name of the key in Redis
	Sequence map[string]int // the sequence number of the next call in each call slot, if it is not 1
	Repeated bool           // Redis has carried out a call of the request before

	slot int
}

type requestKey struct{}

// Within returns a context whose calls with a call slot use the call slots of a request.
func Within(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// InRequest reports whether the context belongs to a request.
func InRequest(ctx context.Context) bool {
	_, ok := ctx.Value(requestKey{}).(*Request)
	return ok
}

// IsRepeated reports whether the context belongs to a request that was carried out before, at least in part.
func IsRepeated(ctx context.Context) bool {
	r, ok := ctx.Value(requestKey{}).(*Request)
	return ok && r.Repeated
}

// next returns the keys of the next call, its call slot and its sequence number. The first key has the answers.
func (r *Request) next(k keys.Names, of []string) (all []string, slot string, sequence uint64) {
	all, slot = slices.Clone(of), strconv.Itoa(r.slot)
	all[0] = k.Calls(r.Name)
	r.slot++
	return all, slot, uint64(max(1, r.Sequence[slot]))
}
