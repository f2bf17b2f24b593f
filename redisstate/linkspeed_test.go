package redisstate

import (
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

func TestLinkSpeedBoundsBytes(t *testing.T) {
	t.Parallel()
	l := linkSpeed{}
	bytesIn := func(d time.Duration, want int) {
		t.Helper()
		expect.Equal(t, l.bytesWithin(d), want, "within", d, "bytes")
	}
	bytesIn(5*time.Second, 5*conn.SlowestLink)
	bytesIn(time.Millisecond, minBytesPerClaim)
	l.observe(1<<20, 10*time.Millisecond)
	bytesIn(5*time.Second, maxBytesPerClaim)
	l.observe(100, time.Minute) // a small reply does not measure the speed
	bytesIn(5*time.Second, maxBytesPerClaim)
	l.observe(1<<20, 8*time.Second)
	bytesIn(4*time.Second, 1<<19)
	l.observe(1<<20, time.Hour)
	bytesIn(5*time.Second, 5*conn.SlowestLink)
}
