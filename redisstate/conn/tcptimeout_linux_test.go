package conn

import (
	"context"
	"errors"
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
	dial := idleTimeoutDialer(&redis.Options{DialTimeout: time.Minute}, 50*time.Millisecond)
	conn := expect.Result(dial(context.Background(), "tcp", l.Addr().String())).Value(t)
	t.Cleanup(func() { conn.Close() })
	expect.NoError(t, conn.SetDeadline(time.Now().Add(longestReply)))
	if _, err := conn.Write(make([]byte, 512<<10)); err != nil { // minRate would allow 32 s for these bytes
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("got %v", err)
	} else if why, passes := outage(err); !passes {
		t.Errorf("%v is no outage: %q", err, why)
	}
}
