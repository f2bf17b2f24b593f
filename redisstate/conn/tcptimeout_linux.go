package conn

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// limitUnacked makes the system close a connection if the peer does not acknowledge sent data within the given time.
func limitUnacked(conn net.Conn, bound time.Duration) error {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(bound.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return failed
}
