package redisstate

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

// slowLink is the speed of a mobile link, in bytes per second.
const slowLink = 32 << 10

// patientContext returns a context that ends after five minutes, so that a test fails instead of waiting for ever.
func patientContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// A reply arrives even if its transfer takes longer than the idle timeout.
func TestRepliesOverASlowLink(t *testing.T) {
	t.Parallel() // the test only waits
	direct := redistest.Shared(t)
	proxy := redistest.NewProxy(t, direct)
	s := connect(t, proxy.Addr, redistest.Namespace(t))
	input := strings.Repeat("x", 100<<10)
	ids := mustOpen(t, s, define(input), define(input))
	archive := []byte(strings.Repeat("x", 200<<10))
	source, err := s.PutProgram(t.Context(), archive)
	must(t, err)
	for name, read := range map[string]func(ctx context.Context, s *Store) (bytes int, err error){
		"settling": func(ctx context.Context, s *Store) (int, error) {
			stored, err := s.Read(ctx, ids, Want{Fields: Rules})
			bytes := 0
			for _, x := range stored {
				bytes += len(x.Task.Input)
			}
			return bytes, err
		},
		"whole tasks": func(ctx context.Context, s *Store) (int, error) {
			stored, err := s.Read(ctx, ids, Want{Fields: Whole})
			bytes := 0
			for _, x := range stored {
				bytes += len(x.Task.Input)
			}
			return bytes, err
		},
		"a program": func(ctx context.Context, s *Store) (int, error) {
			got, err := s.Program(ctx, strings.TrimPrefix(source, "redis:"))
			return len(got), err
		},
		"opening": func(ctx context.Context, s *Store) (int, error) {
			ids, err := s.Open(ctx, "m", define(input), define(input))
			return len(ids) * len(input), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.NewProxy(t, direct)
			s := connect(t, proxy.Addr, s.Keys.Namespace())
			proxy.Limit(slowLink)
			bytes, err := read(patientContext(t), s)
			expect.True(t, err == nil && bytes == 200<<10, bytes, "bytes", err)
			n := s.Outages()
			expect.True(t, n == 0, n, "outages")
		})
	}
}
