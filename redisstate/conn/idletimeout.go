package conn

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// idleTimeout is the time for which a connection waits for the next bytes of a reply.
	idleTimeout = 5 * time.Second
	// SlowestLink is the speed of the slowest link that TDF works with, in bytes per second.
	SlowestLink = 32 << 10
	// minRate is the lowest average speed of a connection, in bytes per second. It is lower than slowestLink, since
	// several connections may share a link. Without minRate, a caller could wait for ever for a peer that sends one
	// byte now and then.
	minRate = SlowestLink / 2
	// The peer must acknowledge bytes within unackedTimeouts times idleTimeout. The product is 30 s. A tunnel to a slow
	// link buffers some megabytes. It accepts more data only when a sixteenth of the buffer is free. At minRate, the
	// tunnel needs 25 s to send this sixteenth.
	unackedTimeouts = 6
	// longestReply is the longest time for one command or pipeline, even if bytes of its reply still arrive. At 32
	// KiB/s, an archive of 64 MiB takes half an hour.
	longestReply = time.Hour
)

// An idleTimeoutConn waits for a reply as long as bytes of the reply arrive. The library go-redis itself sets one
// deadline for a reply of any size. With a deadline that suits small replies, a large reply over a slow link would time
// out. The repeated call would time out again.
//
// So the time-out of go-redis is set to longestReply. Within that time, the connection sets shorter deadlines itself,
// and extends them whenever bytes arrive.
type idleTimeoutConn struct {
	net.Conn
	idleTimeout time.Duration

	mu       sync.Mutex
	read     time.Time // read and write are the caller's deadlines; the zero time means no deadline
	write    time.Time
	begun    time.Time // when the caller began to wait for a reply
	last     time.Time // when the last bytes of the reply arrived
	written  int       // bytes of the command that were written; they may not have arrived yet
	received int
}

type idleTimeoutKey struct{}

// idleTimeoutDialer returns a function that connects as go-redis does, but returns an idleTimeoutConn. The value of
// idleTimeoutKey in the context replaces idleTimeout. Without a name in the options, the certificate must be valid for
// the host of the address.
func idleTimeoutDialer(options *redis.Options, roots string) dial {
	plain := *options
	plain.TLSConfig = nil
	dial := redis.NewDialer(&plain)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		raw, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		idle, ok := ctx.Value(idleTimeoutKey{}).(time.Duration)
		if !ok {
			idle = idleTimeout
		}
		_ = limitUnacked(raw, unackedTimeouts*idle) // if this fails, minRate still limits the wait
		conn := &idleTimeoutConn{Conn: raw, idleTimeout: idle}
		if options.TLSConfig == nil {
			return conn, nil
		}
		ctx, cancel := context.WithTimeout(ctx, options.DialTimeout)
		defer cancel()
		config := options.TLSConfig.Clone()
		if fresh, err := readRoots(roots); err == nil { // otherwise, those of the last valid file
			config.RootCAs = fresh
		}
		if config.ServerName == "" {
			config.ServerName, _, _ = net.SplitHostPort(addr)
		}
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, err
		}
		return secure, nil
	}
}

// SyscallConn lets go-redis check whether an idle connection was closed.
func (c *idleTimeoutConn) SyscallConn() (syscall.RawConn, error) {
	return c.Conn.(syscall.Conn).SyscallConn()
}

func (c *idleTimeoutConn) SetDeadline(t time.Time) error {
	if err := c.SetWriteDeadline(t); err != nil {
		return err
	}
	return c.SetReadDeadline(t)
}

// SetReadDeadline sets the deadline for a reply. The wait for the reply begins now.
func (c *idleTimeoutConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.read, c.begun, c.last, c.received = t, now, now, 0
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline sets the deadline for sending a command. The caller begins to send the command now.
func (c *idleTimeoutConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write, c.written = t, 0
	return c.Conn.SetWriteDeadline(t)
}

func (c *idleTimeoutConn) Read(b []byte) (int, error) {
	if t := c.readBy(); !t.IsZero() {
		if err := c.Conn.SetReadDeadline(t); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.mu.Lock()
		c.received += n
		c.last = time.Now()
		c.mu.Unlock()
	}
	return n, err
}

// readBy returns the time by which the next bytes must arrive. The bytes must arrive within the idle timeout, and the
// average speed since the caller began to wait must be at least minRate. The bytes of the command count as well,
// because Redis replies only after it has received the whole command.
func (c *idleTimeoutConn) readBy() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read.IsZero() {
		return time.Time{}
	}
	sent := c.idleTimeout + atMinRate(c.written)
	return earliest(c.read, c.last.Add(sent), c.begun.Add(sent+atMinRate(c.received)))
}

// writePiece is the number of bytes that are written with one deadline.
const writePiece = 16 << 10

func (c *idleTimeoutConn) Write(b []byte) (written int, err error) {
	for first := true; first || len(b) > 0; first = false {
		piece := b[:min(len(b), writePiece)]
		if t := c.writeBy(len(piece)); !t.IsZero() {
			if err := c.Conn.SetWriteDeadline(t); err != nil {
				return written, err
			}
		}
		n, err := c.Conn.Write(piece)
		written += n
		if err != nil {
			return written, err
		}
		b = b[n:]
	}
	return written, nil
}

// writeBy counts n bytes as written, and returns the time by which the system must accept them.
func (c *idleTimeoutConn) writeBy(n int) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written += n
	if c.write.IsZero() {
		return time.Time{}
	}
	return earliest(c.write, time.Now().Add(c.idleTimeout+atMinRate(n)))
}

func atMinRate(bytes int) time.Duration { return time.Duration(bytes) * time.Second / minRate }

func earliest(first time.Time, others ...time.Time) time.Time {
	for _, t := range others {
		if t.Before(first) {
			first = t
		}
	}
	return first
}
