package admin

import (
	"context"
	"fmt"

	"github.com/tdf-framework/tdf"
)

// serverAlive is how long ago a server must have sent a heartbeat at most. A server sends one at least every 2 s.
const serverAlive = tdf.Seconds(10)

// ErrNoServer is the error of Ready if no server is alive.
var ErrNoServer = tdf.NewError(tdf.CodeUnavailable, "no server has sent a heartbeat within the last 10 s")

// Ready returns nil if tasks can be opened and settled: Redis accepts writes, and a server is alive. If Redis does not answer, Ready waits until ctx ends.
func (a *Admin) Ready(ctx context.Context) error {
	s := a.redis()
	if err := s.TryWrite(ctx); err != nil {
		return fmt.Errorf("check whether Redis accepts writes: %w", err)
	}
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	seen, err := s.LastServerHeartbeat(ctx)
	if err == nil && now.Sub(seen) > serverAlive {
		err = ErrNoServer
	}
	return err
}
