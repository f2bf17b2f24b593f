// Package testlog provides logs for tests: one that a test can read while other goroutines write to it, and one that
// appears in the output of a failed test.
package testlog

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// A Buffer is a bytes.Buffer that is safe for concurrent use.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String returns all text that was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Count returns how often text occurs in the log.
func (b *Buffer) Count(text string) int { return strings.Count(b.String(), text) }

// most is how often a message appears in the output of a test. A loop that waits for Redis, for example, repeats its
// message.
const most = 5

// Of returns a log that appears in the output of the test if the test fails. It leaves out further lines with a message
// that has appeared five times.
func Of(t testing.TB) *slog.Logger {
	return slog.New(brief{slog.NewTextHandler(t.Output(), nil), &counts{seen: map[string]int{}}})
}

// counts says how often each message has appeared.
type counts struct {
	mu   sync.Mutex
	seen map[string]int
}

type brief struct {
	slog.Handler
	counts *counts
}

func (b brief) Handle(ctx context.Context, r slog.Record) error {
	b.counts.mu.Lock()
	b.counts.seen[r.Message]++
	n := b.counts.seen[r.Message]
	b.counts.mu.Unlock()
	switch {
	case n > most:
		return nil
	case n == most:
		r.Message += " (the test's output has no more lines with this message)"
	}
	return b.Handler.Handle(ctx, r)
}

func (b brief) WithAttrs(attrs []slog.Attr) slog.Handler {
	return brief{b.Handler.WithAttrs(attrs), b.counts}
}

func (b brief) WithGroup(name string) slog.Handler { return brief{b.Handler.WithGroup(name), b.counts} }
