// Package limits has what keeps workers from claiming tasks: limits of keys, pauses of queues, groups and the
// namespace, the tasks that are held because of them, and those that are not due yet. It also has the form in which
// sets of open tasks name their tasks.
package limits

import "github.com/tdf-framework/tdf/redisstate/conn"

// Limiter has the methods for limits and pauses.
type Limiter struct{ Conn *conn.Conn }
