package redisstate

import (
	"sync/atomic"
	"time"

	"github.com/tdf-framework/tdf/redisstate/conn"
)

// claimShare sets how long the reply of a claim may take to arrive: the length of the lease divided by claimShare. The
// time is short, because a worker cannot renew its new claims before it has read the reply.
const claimShare = 6

// Limits for the number of bytes that a claim asks for. A reply of fewer bytes than the minimum says too little about
// the speed of the link.
const (
	minBytesPerClaim = 16 << 10
	maxBytesPerClaim = maxBytesPerCall
)

// A linkSpeed measures how fast replies arrive from Redis. Before the first measurement, it assumes slowestLink.
type linkSpeed struct{ bytesPerSecond atomic.Int64 }

// observe records the size of a reply, and the time in which it arrived.
func (l *linkSpeed) observe(bytes int, within time.Duration) {
	if bytes >= minBytesPerClaim {
		l.bytesPerSecond.Store(int64(float64(bytes) / max(within.Seconds(), 1e-6)))
	}
}

// bytesWithin returns the number of bytes that a claim may ask for so that they arrive within the time d.
func (l *linkSpeed) bytesWithin(d time.Duration) int {
	speed := float64(max(l.bytesPerSecond.Load(), conn.SlowestLink))
	return int(min(max(speed*d.Seconds(), minBytesPerClaim), maxBytesPerClaim))
}

// replySize returns the approximate size of a reply: the sum of the lengths of its strings.
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
