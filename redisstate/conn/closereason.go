package conn

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf/internal/resp"
)

type dial = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer returns a dial function whose connections report why Redis closed them. If a value is too large, Redis refuses
// it as soon as it has read the value's length, and closes the connection. At that time, the client is still sending
// the value. A plain connection would report only that it is broken. The client would treat this as an outage, and
// would send the value again for ever. Redis also closes a new connection when it has too many. The connections also
// check the lengths in the replies of Redis, because the library go-redis allocates memory for the length that a header
// names.
//
// A connection whose address is stale fails before it sends anything. If stale is nil, no address is.
func dialer(dial dial, stale func(addr string) bool) dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		conn := &closeReasonConn{Conn: c, replies: resp.Scanner{Limits: replyLimits}}
		if stale != nil {
			conn.stale = func() bool { return stale(addr) }
		}
		if raw, ok := c.(syscall.Conn); ok {
			return &rawCloseReasonConn{conn, raw}, nil
		}
		return conn, nil
	}
}

// A closeReasonConn is a connection whose failed writes return the error reply that Redis sent before it closed the
// connection.
type closeReasonConn struct {
	net.Conn
	replies resp.Scanner
	stale   func() bool // nil means never
	// Redis has refused the connection, because it has too many; go-redis may ignore this answer to its first command
	full atomic.Bool
}

// A rawCloseReasonConn is a closeReasonConn with the method SyscallConn. The library go-redis uses this method to check
// whether the connection is still open.
type rawCloseReasonConn struct {
	*closeReasonConn
	syscall.Conn
}

// replyLimits are the maximum lengths in replies. The longest text that Redis stores by default has 512 MiB.
var replyLimits = resp.Limits{List: 1 << 20, Bytes: 512 << 20}

// closeReasonWait is the longest wait for a reply that Redis sent before it closed the connection.
const closeReasonWait = time.Second

func (c *closeReasonConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if wrong := c.replies.Scan(p[:n]); wrong != nil {
		return 0, &answerError{reason: "unreadable answer: " + wrong.Error(), notRedis: wrong == resp.NotRedis}
	}
	if bytes.HasPrefix(p[:n], []byte("-"+tooManyClients)) {
		c.full.Store(true)
	}
	return n, err
}

func (c *closeReasonConn) Write(p []byte) (int, error) {
	if c.stale != nil && c.stale() {
		return 0, errStale
	}
	n, err := c.Conn.Write(p)
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		return n, err
	}
	if c.full.Load() {
		return n, closedWith(tooManyClients)
	}
	_ = c.Conn.SetReadDeadline(time.Now().Add(closeReasonWait))
	reply := make([]byte, 512)
	read, _ := c.Conn.Read(reply)
	line, whole := strings.CutSuffix(string(reply[:read]), "\r\n")
	if whole && (strings.HasPrefix(line, "-ERR Protocol error") || strings.HasPrefix(line, "-"+tooManyClients)) {
		return n, closedWith(line[1:])
	}
	return n, err
}

// closedWith is the text of an error reply that Redis sent before it closed the connection.
type closedWith string

func (e closedWith) Error() string { return string(e) }

// RedisError makes closedWith a redis.Error, so that it does not count as a broken connection.
func (closedWith) RedisError() {}
