package redistest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

// The clock of a server leaps, and is right again.
func TestClock(t *testing.T) {
	t.Parallel()
	clock := redistest.NewClock(t)
	r := redistest.Client(t, redis.Options{Addr: redistest.Start(t, clock.Option()).Addr})
	for _, leap := range []time.Duration{0, -time.Hour - time.Millisecond, time.Hour + 999*time.Millisecond, 0} {
		clock.Set(leap)
		// each command refreshes the cached time
		expect.Eventually(t, leap.String(), func() bool {
			before := time.Now()
			at := expect.Result(r.Time(t.Context()).Result()).Value(t)
			now := at.Add(-leap).Add(time.Millisecond)
			return !now.Before(before) && !now.After(time.Now().Add(2*time.Millisecond))
		})
	}
}
