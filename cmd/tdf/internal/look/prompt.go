package look

import (
	"bufio"
	"sync"
	"time"
)

// A prompt is a buffer that keeps nothing for longer than promptly, because the next row of a search may be far away.
type prompt struct {
	mu      sync.Mutex
	out     *bufio.Writer
	flushes bool // whether Flush will be called
}

const promptly = 50 * time.Millisecond

func (p *prompt) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.flushes {
		p.flushes = true
		time.AfterFunc(promptly, func() { _ = p.Flush() }) // the buffer keeps the error
	}
	return p.out.Write(b)
}

func (p *prompt) Flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flushes = false
	return p.out.Flush()
}
