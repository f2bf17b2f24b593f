package redisstate

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"time"
)

type dial = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer has connections tell why Redis has closed them. Redis answers a value that is too large as soon as it has read
// its length, and closes the connection while the rest is still being written. The client would see a broken connection,
// take it for an outage, and send the same again for ever.
func dialer(dial dial) dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		conn := &closeReasonConn{Conn: c}
		if raw, ok := c.(syscall.Conn); ok {
			return &rawCloseReasonConn{conn, raw}, nil
		}
		return conn, nil
	}
}

// A closeReasonConn returns the error reply of Redis for a write that failed because Redis closed the connection after it.
type closeReasonConn struct{ net.Conn }

// A rawCloseReasonConn is a closeReasonConn of which go-redis can see whether it is alive before it uses it.
type rawCloseReasonConn struct {
	*closeReasonConn
	syscall.Conn
}

// closeReasonWait bounds the wait for a reply that came before the connection was closed.
const closeReasonWait = time.Second

func (c *closeReasonConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		return n, err
	}
	_ = c.Conn.SetReadDeadline(time.Now().Add(closeReasonWait))
	reply := make([]byte, 512)
	read, _ := c.Conn.Read(reply)
	if line, whole := strings.CutSuffix(string(reply[:read]), "\r\n"); whole && strings.HasPrefix(line, "-ERR Protocol error") {
		return n, closedWith(line[1:])
	}
	return n, err
}

// closedWith is an error reply, as go-redis knows it, that Redis sent before it closed the connection.
type closedWith string

func (e closedWith) Error() string { return string(e) }

// RedisError makes it a redis.Error.
func (closedWith) RedisError() {}
