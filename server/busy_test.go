package server

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate"
)

// A busyStore makes a heartbeat due before each batch, as if the previous batch had taken a long time.
type busyStore struct {
	Store
	server *Server
	calls  []string
}

func (s *busyStore) SettleUsual(ctx context.Context, who string, u tdf.Usual, now tdf.Time, most int) (int, []redisstate.Due, error) {
	s.server.seen = time.Now().Add(-heartbeatPause)
	s.calls = append(s.calls, "due")
	return s.Store.SettleUsual(ctx, who, u, now, most)
}

func (s *busyStore) ServerHeartbeat(ctx context.Context, name string, now tdf.Time) error {
	s.calls = append(s.calls, "heartbeat")
	return s.Store.ServerHeartbeat(ctx, name, now)
}

// A server sends heartbeats between batches, too. Without these heartbeats, another server that starts meanwhile would
// begin a grace period.
func TestHeartbeatsBetweenBatches(t *testing.T) {
	s := newSite(t, redistest.Shared(t))
	d := define()
	d.StartAfter, d.EndBefore = 1, 5
	s.open(slices.Repeat([]tdf.Properties{d}, 2*batchSize)...)
	slow := &busyStore{Store: s.store, server: s.server}
	s.server.store = slow
	done, err := s.server.Settle(t.Context())
	expect.NoError(t, err)
	if want := []string{"due", "heartbeat", "due", "heartbeat", "due", "heartbeat"}; !slices.Equal(slow.calls, want) || done["expired"] != 2*batchSize {
		t.Errorf("the calls are %v, and the server did %v", slow.calls, done)
	}
}
