package rules

import (
	"github.com/tdf-framework/tdf/internal/task"
)

// A Grace is the grace period after an outage (docs/guarantees.md, "After an outage"). Redis stores it for all servers.
// The zero Grace means that there never was a grace period.
type Grace struct {
	Running task.Time // until this time, no running task is lost, timed out or expired
	// until this time, no open task expires and no finished task is removed, since Redis's clock may have leapt
	Open task.Time

	// CheckFuture means that the clock was set back, and a server must still check all tasks with a time in the future:
	// see audit.Auditor.FutureTasks.
	CheckFuture bool
}

// Holds returns the time until which the grace period forbids a move, or 0 if it allows the move.
func (g Grace) Holds(m *Move) task.Time {
	switch {
	case m.Verb == VerbRescore: // a rescore does no harm, because it ends no task
		return 0
	case m.Verb == VerbLose, m.From == task.Running && m.To != task.None:
		return g.Running // the task's worker may have been unable to report
	// The clock may be wrong.
	case m.From == task.Open && m.Verb == VerbExpire, m.Verb == VerbRemove, m.Verb == VerbRemoveOutputs:
		return g.Open
	}
	return 0
}

// ServerPatience is a time in seconds. If the latest heartbeat of all servers is older, TDF assumes that no server is
// running. A server sends a heartbeat every few seconds, even during a long round.
const ServerPatience = task.Seconds(10)
