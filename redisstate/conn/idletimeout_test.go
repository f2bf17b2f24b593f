package conn

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A connection waits for a slow peer. It breaks if the peer sends nothing, or only one byte now and then.
func TestIdleTimeoutConn(t *testing.T) {
	for name, c := range map[string]struct {
		chunk    int           // bytes that arrive at once
		every    time.Duration // the time between two chunks
		deadline time.Duration // deadline of the caller; 0 means longestReply
		arrives  bool
		last     time.Duration // the time until the read of 1 MiB ends
	}{
		"fast":                          {1 << 20, 0, 0, true, 0},
		"slow":                          {32 << 10, time.Second, 0, true, 32 * time.Second},
		"silent":                        {1 << 20, time.Minute, 0, false, 5 * time.Second},
		"a trickle":                     {1, time.Second, 0, false, 5 * time.Second},
		"slow, with a short deadline":   {32 << 10, time.Second, 7 * time.Second, false, 7 * time.Second},
		"silent, with a short deadline": {1 << 20, time.Minute, time.Second, false, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var peer sync.WaitGroup
				defer peer.Wait()
				near, far := net.Pipe()
				defer near.Close()
				defer far.Close()
				peer.Go(func() {
					for {
						time.Sleep(c.every)
						if _, err := far.Write(make([]byte, c.chunk)); err != nil {
							return
						}
					}
				})
				conn := &idleTimeoutConn{Conn: near, idleTimeout: idleTimeout}
				deadline := longestReply
				if c.deadline > 0 {
					deadline = c.deadline
				}
				begun := time.Now()
				must(t, conn.SetReadDeadline(begun.Add(deadline)))
				_, err := io.ReadFull(conn, make([]byte, 1<<20))
				expect.Equal(t, c.arrives, err == nil)
				if err != nil {
					expect.FailsWith(t, err, os.ErrDeadlineExceeded)
				}
				expect.Equal(t, time.Since(begun).Round(time.Second), c.last, "the read ended after")
			})
		})
	}
}

// A connection gives the command time to arrive before it gives up waiting for the reply. When Write returns, the
// kernel may still have to send most of the command.
func TestIdleTimeoutConnWaitsForTheCommandToArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		go io.CopyN(io.Discard, far, 1<<20)
		conn := &idleTimeoutConn{Conn: near, idleTimeout: idleTimeout}
		must(t, conn.SetWriteDeadline(time.Now().Add(longestReply)))
		expect.MustEqual(t, expect.Result(conn.Write(make([]byte, 1<<20))).Value(t), 1<<20)
		go func() {
			time.Sleep(32 * time.Second)
			far.Write([]byte("+OK\r\n"))
		}()
		must(t, conn.SetReadDeadline(time.Now().Add(longestReply)))
		expect.NotEqual(t, expect.Result(conn.Read(make([]byte, 100))).Value(t), 0)
		must(t, conn.SetWriteDeadline(time.Now().Add(longestReply)))
		begun := time.Now()
		if n, err := conn.Write(make([]byte, 1<<20)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) > 10*time.Second {
			t.Errorf("%d bytes that no peer reads were written after %v: %v", n, time.Since(begun), err)
		}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	expect.NoError(t, err)
}
