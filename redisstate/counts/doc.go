// Package counts has what the clients of a namespace count: the tasks of queues, transitions and their times, and the
// history of these counts (docs/metrics.md).
package counts

import (
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/index"
)

// Counters has the methods for counts. Many goroutines may use it at the same time.
type Counters struct {
	index.Names

	tally tally
}

// New returns Counters that count nothing until [Counters.KeepCounts] is called.
func New(c *conn.Conn) *Counters { return &Counters{Names: index.Names{Conn: c}} }
