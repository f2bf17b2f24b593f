// Package callbacks has what managers say in Redis about their callbacks: of which tasks they call them, and which of
// them have failed.
package callbacks

import "github.com/tdf-framework/tdf/redisstate/conn"

// Callbacks has the methods for these records.
type Callbacks struct{ Conn *conn.Conn }
