package manager

import (
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/stdtime"
	"github.com/tdf-framework/tdf/redisstate"
)

// A Query selects the tasks that meet all of its conditions. A field that is zero is no condition, and the zero Query selects all
// tasks. The last run of a task is [Task.LastRun].
type Query struct {
	IDs      []int64     // tasks with one of these ids
	States   []tdf.State // tasks in one of these states
	Group    string      // tasks of this group
	Outcomes []string    // tasks with one of these outcomes
	Program  string      // tasks of this program; * and ? stand for any characters, as in path.Match
	Worker   string      // tasks whose last run was on this worker
	Exit     string      // tasks whose last run ended so: "0" to "255", "signal: killed", or "signal" for any signal
	Since    time.Time   // tasks that entered their state at this time or later
	Before   time.Time   // tasks that entered their state before this time
	Output   string      // tasks whose last run printed this text to stdout
	Error    string      // tasks whose last run printed this text to stderr
	Failure  string      // tasks whose last failure is of this group of failures: its id, or the beginning of the id

	Order Order
	Read  Read
}

// An Order is the order in which tasks come. Tasks of a group come by their ids, and Query.IDs in their own order. All other tasks
// come by the times at which they entered their states, and open tasks by the times at which they may be claimed.
type Order int

// The orders.
const (
	NewestFirst Order = iota
	OldestFirst
	ByID // by ascending id, of whatever tasks; only List supports it
)

// Read says which texts of the last run are read. Without a text, a [Task] has everything else of a summary.
type Read int

// What is read. Each one includes those before it.
const (
	ReadSummary Read = iota // no text but those that the Query searches
	ReadResult              // the result, for Task.Result
	ReadOutput              // stdout and stderr, for Task.Output and Task.Error
)

// A Page is a part of the tasks that a query selects.
type Page struct {
	Tasks []*Task
	// Next is the cursor of the next page; "": this is the last page.
	Next string
	// Looked is how many tasks were read to find those of the page. Redis has lists by state, group and time. For all other conditions,
	// Page reads one task after the other.
	Looked int
}

// A QueryError says why a [Query] or a cursor is invalid.
type QueryError struct{ Problem string }

func (e *QueryError) Error() string { return e.Problem }

// Validate reports why a query, or the cursor of a page, is invalid: a *[QueryError]. It does not need Redis.
func (q Query) Validate(cursor string) error { return queryError(q.listing().Validate(cursor)) }

func (q Query) listing() listing.Query {
	return listing.Query{
		IDs: q.IDs, States: q.States, Group: q.Group, Outcomes: q.Outcomes, Program: q.Program, Worker: q.Worker, Exit: q.Exit,
		After: stdtime.TDF(q.Since), Before: stdtime.TDF(q.Before), Output: q.Output, Error: q.Error, Failure: q.Failure,
		OldestFirst: q.Order != NewestFirst,
	}
}

// texts names the texts to read of a task.
func (q Query) texts(t *tdf.Task) []redisstate.TextsOf {
	if q.Read == ReadSummary {
		return []redisstate.TextsOf{listing.OfTask}
	}
	last := t.LastRun()
	all := append([]redisstate.TextsOf{{Round: last, Texts: tdf.TextResult}}, listing.OfTask)
	if q.Read == ReadOutput {
		all = append(all, redisstate.TextsOf{Round: last, Texts: tdf.TextOutput | tdf.TextError})
	}
	return all
}

// view returns the summary of a task.
func (q Query) view(t *tdf.Task) *Task {
	v := newTask(t, false)
	switch q.Read {
	case ReadSummary:
		v.hidden = []string{"result", "output", "output_whole", "error", "error_whole", "tail"}
	case ReadResult:
		v.hidden = []string{"output", "output_whole", "error", "error_whole", "tail"}
	}
	return v
}
