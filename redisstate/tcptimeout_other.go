//go:build !linux

package redisstate

import (
	"net"
	"time"
)

// limitUnacked does nothing here: a lost peer is noticed by the least rate of a connection.
func limitUnacked(net.Conn, time.Duration) error { return nil }
