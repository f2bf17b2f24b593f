package manager

import (
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/redisstate"
)

// A Query selects the tasks that meet all of its conditions. A field that is zero sets no condition, so the zero Query
// selects all tasks. The last run of a task is [Task.LastRun].
type Query struct {
	IDs      []int64     // tasks with one of these ids
	States   []tdf.State // tasks in one of these states
	Group    string      // tasks of this group
	Outcomes []string    // tasks with one of these outcomes
	Queue    string      // tasks of this queue; [tdf.DefaultQueue] means the tasks without a queue
	Program  string      // tasks of this program; * and ? are wildcards as in path.Match
	Worker   string      // tasks whose last run was on this worker
	Exit     string      // tasks whose last run ended like this: "0" to "255", "signal: killed", or "signal" for any signal
	Since    time.Time   // tasks that entered their state at this time or later
	Before   time.Time   // tasks that entered their state before this time
	Output   string      // tasks whose last run printed this text to stdout
	Error    string      // tasks whose last run printed this text to stderr
	Failure  string      // tasks whose last failure belongs to this failure group, given by its id or the beginning of its id

	Order Order
	Read  Read
}

// An Order is the order in which a query returns tasks. It sorts tasks of a group by their ids, and open tasks by the
// times at which they become claimable. It sorts all other tasks by the times at which they entered their states. Tasks
// that Query.IDs selects keep the order of Query.IDs.
type Order int

// The orders.
const (
	NewestFirst Order = iota
	OldestFirst
	ByID // by ascending id, for any query; only List supports ByID
)

// Read selects which texts of the last run are read. All other fields of a summary are always read.
type Read int

// The values of Read. Each value includes the texts of the values above it.
const (
	ReadSummary Read = iota // only the texts that the Query searches
	ReadResult              // also the result, for Task.Result
	ReadOutput              // also stdout and stderr, for Task.Output and Task.Error
)

// A Page is one part of the tasks that a query selects.
type Page struct {
	Tasks []*Task
	// Next is the cursor of the next page. On the last page it is "".
	Next string
	// Looked is the number of tasks that were read for this page. Redis can find tasks by state, group and time. To
	// check any other condition, Page must read each task.
	Looked int
}

// A QueryError is the reason why a [Query] or a cursor is invalid.
type QueryError = listing.QueryError

// Validate checks a query and the cursor of a page, without Redis. If one of them is invalid, it returns a *[QueryError].
func (q Query) Validate(cursor string) error { return q.listing().Validate(cursor) }

func (q Query) listing() listing.Query {
	return listing.Query{
		IDs: q.IDs, States: q.States, Group: q.Group, Outcomes: q.Outcomes, Queue: q.Queue, Program: q.Program, Worker: q.Worker, Exit: q.Exit,
		After: tdf.At(q.Since), Before: tdf.At(q.Before), Output: q.Output, Error: q.Error, Failure: q.Failure,
		OldestFirst: q.Order != NewestFirst,
	}
}

// texts returns which texts of a task must be read.
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

// view returns the summary of a task, with the texts that the query reads.
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
