// Package presence has what the components of a namespace say about themselves in Redis: the records and heartbeats of
// workers, the heartbeats of servers and managers, the grace period, and the address of the dashboard.
package presence

import (
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/counts"
)

// Presence has the methods for these records. Many goroutines may use it at the same time.
type Presence struct {
	Conn    *conn.Conn
	counts  *counts.Counters
	waiting waitingManagers
}

// New returns a Presence that counts the registrations and deaths of workers with the given Counters.
func New(c *conn.Conn, counters *counts.Counters) *Presence {
	return &Presence{Conn: c, counts: counters}
}
