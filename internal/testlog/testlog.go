// Package testlog provides a log that a test can read while other goroutines write to it.
package testlog

import (
	"bytes"
	"strings"
	"sync"
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
