package server

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

// The server settles due tasks with large inputs even over a slow connection.
func TestSettlesOverASlowLink(t *testing.T) {
	t.Parallel() // the test only waits
	s := newSite(t)
	large := tdf.Defaults("p", "rsync:/p/run.sh", strings.Repeat("x", 100<<10))
	large.EndBefore = s.now().Add(0.001)
	s.open(large, large)
	proxy := redistest.NewProxy(t, s.addr)
	slow := New("server", settings, connect(t, proxy.Addr, s.ns), quiet())
	proxy.Limit(32 << 10)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // ends the test if RunOnce hangs
	defer cancel()
	done, err := slow.RunOnce(ctx)
	expect.True(t, err == nil && done["expired"] == 2, "settled", done, err)
}
