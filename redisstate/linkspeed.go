package redisstate

import (
	"sync/atomic"
	"time"
)

// The reply of a claim may take the lease divided by claimShare. A worker can renew its new claims only after it has
// read the reply.
const claimShare = 6

// The smallest and the largest number of bytes that a claim asks for. A smaller reply does not measure the speed of the
// link.
const (
	minBytesPerClaim = 16 << 10
	maxBytesPerClaim = maxBytesPerCall
)

// A linkSpeed measures how fast replies arrive from Redis. At first it assumes slowestLink.
type linkSpeed struct{ bytesPerSecond atomic.Int64 }

// observe records the size of a reply, and the time in which it arrived.
func (l *linkSpeed) observe(bytes int, within time.Duration) {
	if bytes >= minBytesPerClaim {
		l.bytesPerSecond.Store(int64(float64(bytes) / max(within.Seconds(), 1e-6)))
	}
}

// bytesWithin returns how many bytes a claim may ask for so that they arrive within the time d.
func (l *linkSpeed) bytesWithin(d time.Duration) int {
	speed := float64(max(l.bytesPerSecond.Load(), slowestLink))
	return int(min(max(speed*d.Seconds(), minBytesPerClaim), maxBytesPerClaim))
}

// replySize returns the approximate size of a reply in bytes, without its framing.
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
