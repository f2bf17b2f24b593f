package redisstate

import (
	"sync/atomic"
	"time"
)

// claimShare is the part of a lease, as a divisor, that the reply of a claim may take on its way: a
// worker can renew its new claims only after it has read them.
const claimShare = 6

// Bounds of what a claim asks for, in bytes. A reply below the first says nothing about the speed of
// the connection.
const (
	minBytesPerClaim = 16 << 10
	maxBytesPerClaim = maxBytesPerCall
)

// A linkSpeed knows how fast replies come from Redis. At first it expects the slowestLink connection that TDF
// works with.
type linkSpeed struct{ bytesPerSecond atomic.Int64 }

// observe notes that a reply of that size came within that time.
func (l *linkSpeed) observe(bytes int, within time.Duration) {
	if bytes >= minBytesPerClaim {
		l.bytesPerSecond.Store(int64(float64(bytes) / max(within.Seconds(), 1e-6)))
	}
}

// bytesWithin returns how many bytes a claim may ask for so that they arrive in that time.
func (l *linkSpeed) bytesWithin(d time.Duration) int {
	speed := float64(max(l.bytesPerSecond.Load(), slowestLink))
	return int(min(max(speed*d.Seconds(), minBytesPerClaim), maxBytesPerClaim))
}

// replySize returns about how many bytes a reply has, without its framing.
func replySize(reply any) int {
	switch v := reply.(type) {
	case string:
		return len(v)
	case []any:
		bytes := 0
		for _, part := range v {
			bytes += replySize(part)
		}
		return bytes
	}
	return 0
}
