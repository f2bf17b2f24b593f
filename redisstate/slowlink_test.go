package redisstate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate"
)

// slowLink is the speed of a mobile link, in bytes per second.
const slowLink = 32 << 10

// A reply arrives even if its transfer takes longer than the idle timeout. If a client gave up, it would repeat the call for ever.
func TestRepliesOverASlowLink(t *testing.T) {
	t.Parallel() // the test only waits
	direct := redistest.Shared(t)
	proxy := redistest.NewProxy(t, direct)
	s := connect(t, proxy.Addr, redistest.Namespace(t))
	input := strings.Repeat("x", 100<<10)
	ids := mustOpen(t, s, define(input), define(input))
	archive := []byte(strings.Repeat("x", 200<<10))
	source := expect.Result(s.Programs.PutProgram(t.Context(), archive)).Value(t)
	for name, read := range map[string]func(ctx context.Context, s *redisstate.Store) (bytes int, err error){
		"settling": func(ctx context.Context, s *redisstate.Store) (int, error) {
			stored, err := s.Read(ctx, ids, redisstate.Want{Fields: redisstate.Rules})
			bytes := 0
			for _, x := range stored {
				bytes += len(x.Task.Input)
			}
			return bytes, err
		},
		"whole tasks": func(ctx context.Context, s *redisstate.Store) (int, error) {
			stored, err := s.Read(ctx, ids, redisstate.Want{Fields: redisstate.Whole})
			bytes := 0
			for _, x := range stored {
				bytes += len(x.Task.Input)
			}
			return bytes, err
		},
		"a program": func(ctx context.Context, s *redisstate.Store) (int, error) {
			got, err := s.Programs.Program(ctx, strings.TrimPrefix(source, "redis:"))
			return len(got), err
		},
		"opening": func(ctx context.Context, s *redisstate.Store) (int, error) {
			ids, err := s.Open(ctx, "m", define(input), define(input))
			return len(ids) * len(input), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.NewProxy(t, direct)
			s := connect(t, proxy.Addr, s.Keys.Namespace())
			proxy.Limit(slowLink)
			expect.Equal(t, expect.Result(read(t.Context(), s)).Value(t), 200<<10)
		})
	}
}

// Over a slow link, a claim returns few tasks, so that its reply arrives long before the leases end.
func TestClaimsOverASlowConnection(t *testing.T) {
	t.Parallel() // the test only waits
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	namespace := redistest.Namespace(t)
	near, far := connect(t, redistest.Shared(t), namespace), connect(t, proxy.Addr, namespace)
	large := define(strings.Repeat("x", 100<<10))
	mustOpen(t, near, large, large)
	proxy.Limit(32 << 10)
	for range 2 {
		c := expect.Result(far.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 10, Lease: 15})).Value(t)
		expect.MustLen(t, c.Claims, 1)
		expect.Len(t, c.Claims[0].Task.Input, 100<<10, "the input … bytes")
	}
	c := expect.Result(far.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 10, Lease: 15})).Value(t)
	expect.Len(t, c.Claims, 0)
	expect.True(t, !c.More, len(c.Claims), c.More)
}
