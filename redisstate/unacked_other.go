//go:build !linux

package redisstate

import (
	"net"
	"time"
)

// boundUnacked does nothing here: a lost peer is noticed by the least rate of a connection.
func boundUnacked(net.Conn, time.Duration) error { return nil }
