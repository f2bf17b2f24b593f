// Package index has the names of groups, queues and requirements in Redis, and the indexes of their tasks.
package index

import "github.com/tdf-framework/tdf/redisstate/conn"

// Names has the methods that read the names of groups, queues and requirements, and their indexes.
type Names struct{ Conn *conn.Conn }
