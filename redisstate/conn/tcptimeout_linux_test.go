package conn

import (
	"context"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
)

// If the peer does not acknowledge any bytes, the connection breaks earlier than the limit minRate would break it.
func TestAPeerThatAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	small := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}
	l := expect.Result(small.Listen(t.Context(), "tcp", "127.0.0.1:0")).Value(t)
	t.Cleanup(func() { l.Close() }) // the test never accepts a connection from the listener
	dial := idleTimeoutDialer(&redis.Options{DialTimeout: time.Minute}, "")
	quick := context.WithValue(t.Context(), idleTimeoutKey{}, 50*time.Millisecond)
	conn := expect.Result(dial(quick, "tcp", l.Addr().String())).Value(t)
	t.Cleanup(func() { conn.Close() })
	expect.NoError(t, conn.SetDeadline(time.Now().Add(longestReply)))
	_, err := conn.Write(make([]byte, 512<<10)) // minRate would allow 32 s for these bytes
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	expect.FailsWith(t, err, syscall.ETIMEDOUT)
	why, passes := outage(err)
	expect.True(t, passes, err, "is no outage:", why)
}
