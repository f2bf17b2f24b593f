package listing

import (
	"github.com/tdf-framework/tdf"
)

// A Query selects the tasks that meet all of its conditions. The zero Query selects all tasks. The last run of a task is its
// current round if a worker has claimed it, otherwise the round before.
type Query struct {
	IDs      []int64     // one of these
	States   []tdf.State // in one of these
	Group    string      // of this group
	Outcomes []string    // that ended in one of these ways: [tdf.Task].Outcome
	Program  string      // of this program; * and ? stand for characters, as in path.Match
	Worker   string      // last run by this worker
	Exit     string      // whose last run ended so: "0" to "255", "signal: killed", or "signal" for any signal
	After    tdf.Time    // that entered their state at this time or later
	Before   tdf.Time    // that entered their state before this time; 0: at any time
	Output   string      // whose last run printed this text to stdout
	Error    string      // whose last run printed this text to stderr
	Failure  string      // whose last failure has this [Fingerprint] ID, or an ID that begins so

	OldestFirst bool // otherwise newest first
}

// Validate returns a *[QueryError] if the query or the cursor after is invalid. It does not use Redis.
func (q Query) Validate(after string) error {
	prepared, err := q.prepared()
	if err == nil {
		_, err = prepared.position(after)
	}
	return err
}

// A Page is a part of the tasks that a query selects.
type Page struct {
	// Tasks are summaries. Of their texts they have the input, the meta, and those that the query searches. Task.Unread and
	// Round.Unread name the other texts.
	Tasks []*tdf.Task
	// Looked is how many tasks were read for this page. The lists in Redis give only the state, the group and the time. For
	// all other conditions one task after the other is read.
	Looked int
	Next   string // the cursor of the next page; "": this is the last page
}
