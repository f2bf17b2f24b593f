// Package programs has the programs that a namespace stores, and when they were last used.
package programs

import (
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// Archives has the methods for stored programs. Many goroutines may use it at the same time.
type Archives struct {
	Conn *conn.Conn
	used usedPrograms
}

// New returns the Archives of a namespace.
func New(c *conn.Conn) *Archives { return &Archives{Conn: c} }

// ErrNoProgram means that the namespace does not store a program. It was never pushed, or it was removed.
var ErrNoProgram = task.NewError(task.CodeNotFound, "it is not stored; push it again")
