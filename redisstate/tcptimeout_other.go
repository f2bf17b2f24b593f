//go:build !linux

package redisstate

import (
	"net"
	"time"
)

// limitUnacked does nothing on this system. Without it, minRate bounds the wait for a lost peer.
func limitUnacked(net.Conn, time.Duration) error { return nil }
