package redistest

import (
	"bufio"
	"net"
	"sync"
	"time"
)

// A direction is one of the two that a link has.
type direction int

const (
	toRedis direction = iota
	toClient
)

// A limited link carries something so often, and makes up for a delay of the test's own host that is no longer
// than the burst.
const (
	piecesPerSecond = 50
	burst           = 200 * time.Millisecond
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
		if !l.pass(toRedis, l.redis, command.raw) {
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
		if !l.pass(toClient, l.client, reply.raw) {
			return
		}
	}
}

// pass writes a frame, in pieces where the link is limited. It reports false if a connection was closed.
func (l *link) pass(d direction, to net.Conn, raw []byte) bool {
	for len(raw) > 0 {
		piece, wait, resumed := l.proxy.reserve(d, len(raw))
		if wait > 0 {
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-resumed:
			case <-l.closed:
				timer.Stop()
				return false
			}
			timer.Stop()
		}
		if _, err := to.Write(raw[:piece]); err != nil {
			return false
		}
		raw = raw[piece:]
	}
	return true
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
