// Package limits has what keeps workers from claiming tasks: limits of keys, and pauses of queues, groups and the
// namespace.
package limits

import "github.com/tdf-framework/tdf/redisstate/conn"

// Limiter has the methods for limits and pauses.
type Limiter struct{ *conn.Conn }
