package redisstate

import (
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

func TestLinkSpeedBoundsBytes(t *testing.T) {
	t.Parallel()
	l := linkSpeed{}
	expect := func(d time.Duration, want int) {
		t.Helper()
		expect.Equal(t, l.bytesWithin(d), want, "within", d, "bytes")
	}
	expect(5*time.Second, 5*conn.SlowestLink)
	expect(time.Millisecond, minBytesPerClaim)
	l.observe(1<<20, 10*time.Millisecond)
	expect(5*time.Second, maxBytesPerClaim)
	l.observe(100, time.Minute) // a small reply does not measure the speed
	expect(5*time.Second, maxBytesPerClaim)
	l.observe(1<<20, 8*time.Second)
	expect(4*time.Second, 1<<19)
	l.observe(1<<20, time.Hour)
	expect(5*time.Second, 5*conn.SlowestLink)
}

// Over a slow link, a claim returns few tasks, so that its reply arrives long before the leases end.
func TestClaimsOverASlowConnection(t *testing.T) {
	t.Parallel() // the test only waits
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	namespace := redistest.Namespace(t)
	near, far := connect(t, redistest.Shared(t), namespace), connect(t, proxy.Addr, namespace)
	large := define(strings.Repeat("x", 100<<10))
	mustOpen(t, near, large, large)
	proxy.Limit(32 << 10)
	for range 2 {
		c, err := far.Claim(t.Context(), ClaimRequest{Worker: "w", Most: 10, Lease: 15})
		expect.MustTrue(t, err == nil && len(c.Claims) == 1, "claimed", len(c.Claims), err)
		expect.Len(t, c.Claims[0].Task.Input, 100<<10, "the input … bytes")
	}
	if c, err := far.Claim(t.Context(), ClaimRequest{Worker: "w", Most: 10, Lease: 15}); err != nil || len(c.Claims) > 0 || c.More {
		t.Errorf("a third claim claimed %d tasks, more %t, %v", len(c.Claims), c.More, err)
	}
	expect.True(t, far.Outages() == 0, "the client gave up waiting for a reply")
}
