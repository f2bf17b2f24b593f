// Package notices has the notices about what servers have seen, and what servers need to deliver each once.
package notices

import "github.com/tdf-framework/tdf/redisstate/conn"

// An Outbox has the methods for notices.
type Outbox struct{ Conn *conn.Conn }
