package listing

import (
	"github.com/tdf-framework/tdf"
)

// A Query says which tasks are meant: those that meet all of what it names. The zero Query means all
// tasks there are. The last run of a task is its current round if a worker has it or had it, else the round before.
type Query struct {
	IDs      []int64     // one of these
	States   []tdf.State // in one of these
	Group    string      // of this group
	Outcomes []string    // that ended so: [tdf.Task].Outcome
	Program  string      // of this program; * and ? stand for characters, as in path.Match
	Worker   string      // last run by this worker
	Exit     string      // whose last run ended with this: "0" to "255", "signal: killed", "signal" for any
	After    tdf.Time    // that entered their state at this time or later
	Before   tdf.Time    // that entered their state before this time; 0: no matter when
	Output   string      // whose last run has this text in its output
	Error    string      // whose last run has this text in its error
	Failure  string      // whose last failure is of this [FailureGroup], by its ID or the beginning of it

	OldestFirst bool // else the newest come first
}

// Validate reports what is wrong with a query, or with the name of the page that it is to go on with ("": the first one): a
// *[QueryError]. It needs no Redis.
func (q Query) Validate(after string) error {
	prepared, err := q.prepared()
	if err == nil {
		_, err = prepared.position(after)
	}
	return err
}

// A Page is a part of the tasks that a query means.
type Page struct {
	// Tasks are summaries: of their texts they have the input, the meta, and those that the query looks into. What
	// else there is is named by Task.Unread and Round.Unread.
	Tasks []*tdf.Task
	// Looked is how many tasks were looked at for this page. What the lists do not tell (all but the
	// state, the group and the time) is found by looking at one task after the other.
	Looked int
	Next   string // names the next page; "": this is the last one
}
