package listing

import (
	"github.com/tdf-framework/tdf"
)

// A Query selects the tasks that meet all of its conditions. The zero Query selects all tasks. The last run of a task is
// its current round or, if no worker has claimed that round, the previous round.
type Query struct {
	IDs      []int64     // tasks with one of these ids
	States   []tdf.State // tasks in one of these states
	Group    string      // tasks of this group
	Outcomes []string    // tasks with one of these outcomes: [tdf.Task].Outcome
	Queue    string      // tasks of this queue; [tdf.DefaultQueue] means the tasks without a queue
	Program  string      // tasks of this program; * and ? are wildcards as in path.Match
	Worker   string      // tasks whose last run was on this worker
	Exit     string      // tasks whose last run ended like this: "0" to "255", "signal: killed", or "signal" for any signal
	After    tdf.Time    // tasks that entered their state at this time or later
	Before   tdf.Time    // tasks that entered their state before this time; 0 means no limit
	Output   string      // tasks whose last run printed this text to stdout
	Error    string      // tasks whose last run printed this text to stderr
	Failure  string      // tasks whose last failure has this [Fingerprint] ID, or an ID that begins with these digits

	OldestFirst bool // the oldest tasks come first, instead of the newest
}

// Validate checks the query and the cursor, without Redis. If one of them is invalid, it returns a *[QueryError].
func (q Query) Validate(after string) error {
	prepared, err := q.prepare()
	if err == nil {
		_, err = prepared.position(after)
	}
	return err
}

// A Page is one part of the tasks that a query selects.
type Page struct {
	// Tasks are summaries. They contain the input, the meta, and the texts that the query searches. Task.Unread and
	// Round.Unread name the other texts.
	Tasks []*tdf.Task
	// Looked is the number of tasks that were read for this page. The lists in Redis contain only the state, the group and
	// the time. To check any other condition, the walk reads each task.
	Looked int
	Next   string // the cursor of the next page; "" on the last page
}
