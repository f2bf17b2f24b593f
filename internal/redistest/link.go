package redistest

import (
	"bufio"
	"net"
	"sync"
	"time"
)

// A direction is a direction of a link.
type direction int

const (
	toRedis direction = iota
	toClient
)

// Properties of a limited link.
const (
	piecesPerSecond = 50
	burst           = 200 * time.Millisecond // the longest delay of the test's host that the link makes up for
)

// A link is a client's connection and its connection to Redis.
type link struct {
	proxy         *Proxy
	client, redis net.Conn
	closeOnce     sync.Once
	closed        chan struct{}

	mu      sync.Mutex
	pending []bool // for each unanswered command, in order: drop its reply?
}

func (l *link) close() {
	l.closeOnce.Do(func() {
		close(l.closed)
		l.client.Close()
		l.redis.Close()
	})
}

// run passes commands and replies until a connection ends.
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
		l.push(l.proxy.claimDrop(command.words)) // before the reply can arrive
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

// pass writes a frame. If the link is limited, it writes pieces. It returns false if a connection was closed.
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

// pop matches a reply to its command. Messages to subscribers in RESP2 have no command.
func (l *link) pop() (drop bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 {
		return false
	}
	drop, l.pending = l.pending[0], l.pending[1:]
	return drop
}
