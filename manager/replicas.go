package manager

import (
	"context"

	"github.com/tdf-framework/tdf/redisstate/conn"
)

// WithReplicas returns a context for calls whose writes n replicas of Redis must confirm, if this is more than
// [redis] replicas (docs/guarantees.md, "Confirmed writes"). If too few of them confirm a write in time, the error has
// the code tdf.CodeUnknown.
func WithReplicas(ctx context.Context, n int) context.Context {
	return conn.WithReplicas(ctx, &conn.Replicas{Wanted: n, Least: n})
}
