package manager_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
)

// Large inputs and outputs of tasks reach the callbacks over a slow connection, too.
func TestRunOverASlowLink(t *testing.T) {
	t.Parallel() // the test only waits
	cfg := redisConfig(t, redistest.Shared(t))
	startServerAndWorker(t, cfg)
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	far := cfg
	far.Redis = redisConfig(t, proxy.Addr).Redis
	m := newManager(t, far, testspace.Log(silent))
	input := strings.Repeat("x", 100<<10)
	expect.Result(m.Open(t.Context(), define("p", source, input), define("p", source, input))).OK(t)
	proxy.Limit(32 << 10)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // ends the test if Run hangs
	defer cancel()
	bytes := 0
	err := m.Run(ctx, manager.Callbacks{Succeeded: func(_ context.Context, t *manager.Finished) error {
		bytes += len(t.Output())
		return nil
	}})
	expect.True(t, err == nil && bytes >= 200<<10, bytes, "bytes", err)
}
