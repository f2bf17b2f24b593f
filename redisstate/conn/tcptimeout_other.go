//go:build !linux

package conn

import (
	"net"
	"time"
)

// limitUnacked does nothing on this system. If the peer is lost, minRate limits the wait instead.
func limitUnacked(net.Conn, time.Duration) error { return nil }
