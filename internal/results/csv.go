package results

import (
	"encoding/csv"
	"errors"
	"io"
	"slices"

	"github.com/tdf-framework/tdf/manager"
)

// Fixed columns of the CSV. The columns of parameters follow firstColumns. The columns of results follow runColumns.
var (
	firstColumns = []string{"id", "campaign", "program", "input", "state", "outcome", "round", "run"}
	runColumns   = []string{
		"opened", "started", "ended", "seconds", "cpu_seconds", "max_rss", "worker", "exit", "program_sha256",
	}
	printedColumns = []string{"output", "output_whole", "error"}
	// replacedColumn follows the parameters, if the input of a task was replaced.
	replacedColumn = "input_replaced"
	// resourcesColumn precedes the columns of the run, if a task asks for resources.
	resourcesColumn = "resources"
	// namespaceColumn follows the id, if several namespaces work as one.
	namespaceColumn = "namespace"
	lastColumns     = []string{encodedColumn}
	encodedColumn   = "base64" // names the columns whose cells are in base64 in this row
	// otherColumn precedes base64, if the columns are those of a sample. It has the cells of further columns, as JSON.
	otherColumn = "other_columns"
	oddColumns  = []string{replacedColumn, resourcesColumn, namespaceColumn}
)

// The first tasks, up to one of these bounds, and as many of the newest, decide about the columns of a CSV.
const (
	sampledTasks = 1000
	sampledBytes = 4 << 20 // of their texts; the first tasks are in memory until the header is written
)

// Written says what [CSV] has written.
type Written struct {
	Rows    int
	Other   int      // number of rows with values in the column other_columns
	LeftOut []string // names of fields of last lines that have no column, because they are no numbers; at most 10
}

// CSV writes a row for each task of a Source, sorted by id. It reads each task once, and writes the first rows when it
// has read the tasks that decide about the columns: a sample if there are many tasks. Values without a column stand in
// the column other_columns. If Options.Columns names the columns, there is no such column, and CSV writes the first
// rows when tasks have these columns; if no task has one, the error may come after all rows.
func CSV(all Source, out io.Writer, o Options) (Written, error) {
	// w.Flush moves a row to out, which decides when to pass it on; a bufio.Writer would become that of w
	w := &rowWriter{o: &o, out: out, w: csv.NewWriter(struct{ io.Writer }{out}), c: newColumns(o.Fields), all: all}
	err := w.writeAll()
	w.LeftOut = w.c.leftOut
	return w.Written, err
}

// A rowWriter writes a CSV.
type rowWriter struct {
	Written
	o   *Options
	all Source
	out io.Writer
	w   *csv.Writer
	c   *columns

	names []string        // of all columns; nil before the header is written
	held  []*manager.Task // the first tasks, before the header is written
	bytes int             // of their texts
}

func (w *rowWriter) writeAll() error {
	if err := checkRepeats(w.o.Columns); err != nil {
		return err
	}
	for t, err := range w.all(reading(w.o.readsOutput(w.c.taken))) {
		if err == nil {
			err = w.add(t)
		}
		if err != nil {
			return err
		}
	}
	if w.names == nil {
		return w.begin(false)
	}
	_, err := w.choose()
	return err
}

// choose returns the columns that were chosen, of those that are known.
func (w *rowWriter) choose() ([]string, error) { return choose(w.c.names(w.o.Output), w.o.Columns) }

// readsOutput reports whether columns need stdout or stderr. The map has the names of the fixed columns.
func (o *Options) readsOutput(fixed map[string]bool) bool {
	if len(o.Columns) == 0 {
		return o.Output || o.Fields != FromResult
	}
	return slices.ContainsFunc(o.Columns, func(name string) bool {
		return isPrinted(name) || !fixed[name] && o.Fields != FromResult
	})
}

// add writes the row of a task, or holds the task until the columns are known.
func (w *rowWriter) add(t *manager.Task) error {
	if err := w.collect(t); err != nil {
		return err
	}
	if w.names != nil {
		return w.row(t)
	}
	w.held, w.bytes = append(w.held, t), w.bytes+textBytes(t)
	if w.o.Charge != nil {
		if err := w.o.Charge(int64(textBytes(t) + taskBytes)); err != nil {
			return err
		}
	}
	if len(w.held) == sampledTasks || w.bytes >= sampledBytes {
		return w.begin(true)
	}
	if len(w.o.Columns) > 0 {
		if _, unknown := w.choose(); unknown == nil {
			return w.begin(true)
		}
	}
	return nil
}

// taskBytes is about what a task needs in memory, besides its texts.
const taskBytes = 4 << 10

func textBytes(t *manager.Task) int {
	return len(t.Input) + len(t.Meta) + len(t.Result()) + len(t.Output()) + len(t.Stderr())
}

// collect adds the columns of a task.
func (w *rowWriter) collect(t *manager.Task) error {
	before := w.c.memory()
	w.c.collect(t)
	if w.o.Charge == nil {
		return nil
	}
	return w.o.Charge(w.c.memory() - before)
}

// begin writes the header, and the rows that come first. The parameter more says that more tasks may follow.
func (w *rowWriter) begin(more bool) error {
	if len(w.o.Columns) == 0 && more {
		if err := w.sampleNewest(); err != nil {
			return err
		}
		w.c.other = true
	}
	names, err := w.choose()
	if err != nil && more { // a later task may have the column
		names, err = slices.Clone(w.o.Columns), nil
	}
	if err == nil {
		w.names, err = w.o.begin(w.w, w.out, names)
	}
	w.c.begun = []int{len(w.c.order), len(w.c.resultOrder)}
	for _, t := range w.held {
		if err == nil {
			err = w.row(t)
		}
	}
	w.held = nil
	w.w.Flush()
	return errors.Join(err, w.w.Error())
}

// sampleNewest adds the columns of the newest tasks, which may be others than those of the oldest.
func (w *rowWriter) sampleNewest() error {
	read, n, size := reading(w.o.readsOutput(w.c.taken)), 0, 0
	for t, err := range w.all(func(q *manager.Query) { read(q); q.Order = manager.NewestFirst }) {
		if err == nil {
			err = w.collect(t)
		}
		if err != nil {
			return err
		}
		n, size = n+1, size+textBytes(t)
		if n == sampledTasks || size >= sampledBytes {
			break
		}
	}
	return nil
}

func (w *rowWriter) row(t *manager.Task) error {
	row, other := w.c.row(t, w.names)
	if other {
		w.Other++
	}
	w.Rows++
	err := writeRow(w.w, w.out, w.o.change(row))
	w.w.Flush()
	return errors.Join(err, w.w.Error())
}

// begin writes the header, and the rows that come first. It returns the names of all columns.
func (o *Options) begin(w *csv.Writer, out io.Writer, names []string) ([]string, error) {
	before := &earlier{}
	var err error
	if o.Before != nil {
		before, err = newEarlier(o.Before)
		names = before.join(names)
	}
	if err == nil {
		err = writeRow(w, out, o.change(slices.Clone(names)))
	}
	if err == nil && before.names != nil {
		w.Flush()
		err = before.copy(out, len(names))
	}
	return names, err
}

// writeRow writes a row. If its only cell is empty, it writes quotes, because programs skip empty lines.
func writeRow(w *csv.Writer, out io.Writer, row []string) error {
	if len(row) != 1 || row[0] != "" {
		return w.Write(row)
	}
	w.Flush()
	_, err := io.WriteString(out, "\"\"\n")
	return errors.Join(w.Error(), err)
}
