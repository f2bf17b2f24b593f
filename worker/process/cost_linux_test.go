package process

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// The peak memory that Linux reports for a program includes the peak of its parent process. So the number may be larger
// than the program's own peak.
func TestThePeakIsTheProgramsOwn(t *testing.T) {
	const big = 64 << 20
	ballast := make([]byte, big)
	for i := 0; i < len(ballast); i += 1 << 10 {
		ballast[i] = 1
	}
	runtime.KeepAlive(ballast)
	bothWays(t, func(t *testing.T, s *site) {
		measured := s.host.cgroups != nil && s.host.cgroups.has["memory"]
		got := s.sh("true").wait().MaxRSS
		expect.True(t, got < big && (measured || got == 0), "a small program had", got, "bytes")
		mib := int(ownPeak()>>20) + 200
		if got := s.sh(fmt.Sprintf("dd if=/dev/zero of=/dev/null bs=%dM count=1", mib)).wait().MaxRSS >> 20; got < int64(mib) || got > int64(mib)+100 {
			t.Errorf("a program with %d MiB had %d MiB", mib, got)
		}
	})
}
