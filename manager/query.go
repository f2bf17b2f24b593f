package manager

import (
	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/redisstate"
)

// A Query selects the tasks that meet all of its conditions. The zero Query selects all tasks.
type Query = tdf.Query

// An Order is the order in which a query returns tasks.
type Order = tdf.Order

// The orders.
const (
	NewestFirst = tdf.NewestFirst
	OldestFirst = tdf.OldestFirst
	ByID        = tdf.ByID // by ascending id, for any query; only List supports ByID
)

// Read selects which texts of the last run are read. All other fields of a summary are always read.
type Read = tdf.Read

// The values of Read. Each value includes the texts of the values above it.
const (
	ReadSummary = tdf.ReadSummary // only the texts that the Query searches
	ReadResult  = tdf.ReadResult  // also the result, for Task.Result
	ReadOutput  = tdf.ReadOutput  // also stdout and stderr, for Task.Output and Task.Error
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
type QueryError = tdf.QueryError

// textsOf returns a function that says which texts of a task a query reads.
func textsOf(read Read) func(*tdf.Task) []redisstate.TextsOf {
	return func(t *tdf.Task) []redisstate.TextsOf {
		texts := []redisstate.TextsOf{listing.OfTask}
		if read != ReadSummary {
			texts = append(texts, redisstate.TextsOf{Round: t.LastRun(), Texts: tdf.TextResult})
		}
		if read == ReadOutput {
			texts = append(texts, redisstate.TextsOf{Round: t.LastRun(), Texts: tdf.TextOutput | tdf.TextError})
		}
		return texts
	}
}

// summary returns the summary of a task, with the texts that a query reads.
func summary(t *tdf.Task, read Read) *Task {
	v := TaskOf(t, false)
	switch read {
	case ReadSummary:
		v.hidden = []string{"result", "output", "output_whole", "error", "error_whole", "tail"}
	case ReadResult:
		v.hidden = []string{"output", "output_whole", "error", "error_whole", "tail"}
	}
	return v
}
