// Package results writes the results of tasks: as CSV, with a column for each parameter and each field of the results,
// or as JSON lines. tdf results and the HTTP API share it. A [Table] keeps them in memory, for plots.
package results

import (
	"context"
	"encoding/json"
	"io"
	"iter"

	"github.com/tdf-framework/tdf/manager"
)

// The values of Options.Fields: where the fields of a task's result come from.
const (
	FromAuto     = "auto" // from result.json, or if there is none, from the last line
	FromLastLine = "last-line"
	FromResult   = "result.json"
)

// Sources are the values of Options.Fields.
var Sources = []string{FromAuto, FromLastLine, FromResult}

// Options say how to write CSV.
type Options struct {
	Fields      string   // one of Sources
	Output      bool     // with stdout and stderr
	Columns     []string // the columns, in their order; empty means all
	Spreadsheet bool     // with an apostrophe before cells that look like formulas

	// Before is a CSV that CSV has written earlier. Its rows and columns come first. nil has none.
	Before io.Reader

	// Charge gets how many bytes the columns of a task need in memory. Its error ends the CSV. It may be nil.
	Charge func(bytes int64) error
	// Cell changes each cell; nil changes none.
	Cell func(string) string
}

// change changes a row as the options say.
func (o *Options) change(row []string) []string {
	if o.Spreadsheet {
		escapeFormulas(row)
	}
	if o.Cell != nil {
		for i := range row {
			row[i] = o.Cell(row[i])
		}
	}
	return row
}

// Lines writes the JSON of each task of a Source, sorted by id. If withOutput is true, it includes stdout and
// stderr.
func Lines(all Source, out *json.Encoder, withOutput bool) (n int, err error) {
	for t, err := range all(reading(withOutput)) {
		if err != nil {
			return n, err
		}
		if err := out.Encode(t); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// A Source lists the tasks that a query selects. It gets what the results need of the query: its order, and the texts
// that it reads.
type Source func(change func(*manager.Query)) iter.Seq2[*manager.Task, error]

// From returns the Source for a query to a manager.
func From(ctx context.Context, m *manager.Manager, q manager.Query) Source {
	return func(change func(*manager.Query)) iter.Seq2[*manager.Task, error] {
		change(&q)
		return m.List(ctx, q)
	}
}

// reading makes a query read tasks with their results, in the order of their ids. If withOutput is true, the query also
// reads stdout and stderr.
func reading(withOutput bool) func(*manager.Query) {
	return func(q *manager.Query) {
		q.Order, q.Read = manager.ByID, manager.ReadResult
		if withOutput {
			q.Read = manager.ReadOutput
		}
	}
}
