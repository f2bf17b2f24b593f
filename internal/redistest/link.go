package redistest

import (
	"bufio"
	"math"
	"net"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/resp"
)

// A direction is the direction in which a link passes frames.
type direction int

const (
	toRedis direction = iota
	toClient
)

// A loss says what the proxy drops of a command and its reply. Then it closes the connection.
type loss int

const (
	nothing loss = iota
	wholeReply
	halfReply // the second half
	wholeCommand
)

// Properties of a link whose rate is limited (Proxy.Limit).
const (
	piecesPerSecond = 50
	longestLine     = 64 << 10
	burst           = 200 * time.Millisecond // if the test's host was slow, the link makes up for at most this delay
)

var anySize = resp.Limits{List: math.MaxInt32, Bytes: math.MaxInt32}

// A link is a client's connection to the proxy, with the proxy's connection to Redis.
type link struct {
	proxy         *Proxy
	client, redis net.Conn
	closeOnce     sync.Once
	closed        chan struct{}

	mu      sync.Mutex
	pending []loss // for each unanswered command, in order: what the proxy drops of its reply
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
	from := bufio.NewReaderSize(l.client, longestLine)
	for {
		command, err := resp.Read(from, anySize)
		if err != nil {
			return
		}
		if !l.proxy.hold(l) {
			return
		}
		lost := l.proxy.claimDrop(command.Words)
		if lost == wholeCommand {
			l.proxy.countDrop()
			return
		}
		l.push(lost) // before the command is passed, because the reply can arrive immediately after that
		if !l.pass(toRedis, l.redis, command.Raw) {
			return
		}
	}
}

func (l *link) passReplies() {
	defer l.close()
	from := bufio.NewReaderSize(l.redis, longestLine)
	for {
		reply, err := resp.Read(from, anySize)
		if err != nil {
			return
		}
		if lost := l.pop(); lost != nothing {
			if lost == halfReply {
				l.pass(toClient, l.client, reply.Raw[:len(reply.Raw)/2])
			}
			l.proxy.countDrop()
			return
		}
		if !l.proxy.hold(l) {
			return
		}
		if !l.pass(toClient, l.client, l.proxy.altered(reply.Raw)) {
			return
		}
	}
}

// pass writes a frame. If the rate is limited, it writes the frame in pieces. It returns false if a connection was
// closed.
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

func (l *link) push(lost loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, lost)
}

// pop returns what to drop of the reply to the oldest unanswered command. A message to a subscriber may arrive although
// no command is unanswered. The proxy does not drop this message.
func (l *link) pop() (lost loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 {
		return nothing
	}
	lost, l.pending = l.pending[0], l.pending[1:]
	return lost
}
