package listing

import (
	"github.com/tdf-framework/tdf"
)

// Validate checks a query and the cursor of a page, without Redis. If one of them is invalid, it returns a *[tdf.QueryError].
func Validate(q tdf.Query, cursor string) error {
	prepared, err := prepare(q)
	if err == nil {
		_, err = positionOf(&prepared, cursor)
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
