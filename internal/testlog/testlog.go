// Package testlog is a log that a test reads while others write it.
package testlog

import (
	"bytes"
	"strings"
	"sync"
)

// A Buffer keeps what is written. It may be used by many goroutines.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String returns all that was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Count returns how often a text was written so far.
func (b *Buffer) Count(text string) int { return strings.Count(b.String(), text) }
