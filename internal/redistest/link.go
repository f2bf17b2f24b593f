package redistest

import (
	"bufio"
	"net"
	"sync"
)

// A link is one client's connection and the one to Redis that serves it.
type link struct {
	proxy         *Proxy
	client, redis net.Conn
	closeOnce     sync.Once
	closed        chan struct{}

	mu      sync.Mutex
	pending []bool // for each command without a reply yet, in order: is its reply to be dropped
}

func (l *link) close() {
	l.closeOnce.Do(func() {
		close(l.closed)
		l.client.Close()
		l.redis.Close()
	})
}

// run passes on both directions until one of them ends.
func (l *link) run() {
	var both sync.WaitGroup
	both.Go(l.passCommands)
	both.Go(l.passReplies)
	both.Wait()
}

func (l *link) passCommands() {
	defer l.close()
	from := bufio.NewReader(l.client)
	for {
		command, err := readFrame(from)
		if err != nil {
			return
		}
		if !l.proxy.hold(l) {
			return
		}
		l.push(l.proxy.claimDrop(command.words)) // before its reply can come
		if _, err := l.redis.Write(command.raw); err != nil {
			return
		}
	}
}

func (l *link) passReplies() {
	defer l.close()
	from := bufio.NewReader(l.redis)
	for {
		reply, err := readFrame(from)
		if err != nil {
			return
		}
		if !reply.isPush() && l.pop() {
			l.proxy.countDrop()
			return
		}
		if !l.proxy.hold(l) {
			return
		}
		if _, err := l.client.Write(reply.raw); err != nil {
			return
		}
	}
}

func (l *link) push(drop bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, drop)
}

// pop matches a reply to its command. RESP2's messages to subscribers have none.
func (l *link) pop() (drop bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 {
		return false
	}
	drop, l.pending = l.pending[0], l.pending[1:]
	return drop
}
