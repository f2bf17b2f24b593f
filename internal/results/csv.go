package results

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/jsonview"
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

// columns holds the columns that depend on the tasks.
type columns struct {
	source              string            // Options.Fields
	parameters, results map[string]string // name of the column for each key
	order, resultOrder  []string          // names of the columns, in the order of the CSV
	taken               map[string]bool   // names of all columns
	bytes               int               // total length of these names
	replaced            bool              // whether the input of a task was replaced
	resources           bool              // whether a task asks for resources
	shards              bool              // whether tasks have namespaces
	other               bool              // whether there is the column other_columns
	begun               []int             // the lengths of order and resultOrder when the header was written
	leftOut             []string          // names of fields of last lines that are no numbers
}

func newColumns(source string) *columns {
	c := &columns{
		source: source, parameters: map[string]string{}, results: map[string]string{},
		taken: map[string]bool{},
	}
	c.taken[otherColumn] = true
	for _, name := range slices.Concat(firstColumns, oddColumns, runColumns, printedColumns, lastColumns) {
		c.taken[name] = true
	}
	return c
}

// These constants limit the memory that tasks with many different parameters need.
const (
	maxColumns = 10_000
	maxNames   = 4 << 20 // bytes of the names of all columns
)

// memory returns about how many bytes the columns need, and the cells of a row.
func (c *columns) memory() int64 { return int64(500*len(c.taken) + 4*c.bytes) }

// wholeKey is the key of a meta or result that is not a JSON object, or whose fields would need too many columns. No
// key in valid JSON is equal to wholeKey.
const wholeKey = "\xff"

// whole returns a meta or result as one field.
func whole(text string) []field { return []field{{wholeKey, json.RawMessage(text)}} }

// collect adds columns for a task's parameters and results.
func (c *columns) collect(t *manager.Task) {
	c.replaced, c.shards = c.replaced || t.InputReplaced, c.shards || t.Namespace != ""
	c.resources = c.resources || t.Definition.Resources != ""
	for _, f := range c.fitting(c.parameters, t.Meta, fieldsOf(t.Meta)) {
		c.add(c.parameters, &c.order, f.key, parameterName(f.key), "parameter.")
	}
	text, fields := c.resultFields(t)
	for _, f := range c.fitting(c.results, text, fields) {
		c.add(c.results, &c.resultOrder, f.key, resultName(f.key), "result.")
	}
}

// fitting returns the fields of a text that get columns. A text may take half of what is left of the bounds, so that
// one odd result leaves columns for others. A text that needs more is one field.
func (c *columns) fitting(known map[string]string, text string, fields []field) []field {
	n, size := 0, 0
	for _, f := range fields {
		if known[f.key] == "" {
			n, size = n+1, size+len("result.")+len(f.key)
		}
	}
	if 2*n > maxColumns-len(c.taken)+1 || 2*size > maxNames-c.bytes+1 {
		return whole(text)
	}
	return fields
}

// resultFields returns a task's result, or the last line in its place, and the fields of this text.
func (c *columns) resultFields(t *manager.Task) (text string, fields []field) {
	if c.source != FromLastLine {
		if result := t.Result(); result != "" || c.source == FromResult {
			return result, fieldsOf(result)
		}
	}
	line := lastLine(t.Output())
	return line, c.numbersOf(line)
}

func parameterName(key string) string {
	if key == wholeKey {
		return "meta"
	}
	return key
}

func resultName(key string) string {
	if key == wholeKey {
		return "result"
	}
	return "result." + key
}

// add adds a column for a key. It adds prefixes to the column's name until no other column has this name.
func (c *columns) add(of map[string]string, order *[]string, key, name, prefix string) {
	if _, known := of[key]; known {
		return
	}
	for c.taken[name] {
		name = prefix + name
	}
	c.taken[name], of[key] = true, name
	c.bytes += len(name)
	*order = append(*order, name)
}

// names returns the names of all columns. If withOutput is true, it includes the columns for stdout and stderr.
func (c *columns) names(withOutput bool) []string {
	names := slices.Concat(firstColumns, c.order)
	if c.replaced {
		names = append(names, replacedColumn)
	}
	if c.resources {
		names = append(names, resourcesColumn)
	}
	if c.shards {
		names = slices.Insert(names, 1, namespaceColumn)
	}
	names = slices.Concat(names, runColumns, c.resultOrder)
	if withOutput {
		names = append(names, printedColumns...)
	}
	if c.other {
		names = append(names, otherColumn)
	}
	return append(names, lastColumns...)
}

// oneEnd removes one newline at the end, so that the output of most programs stays on one line of the CSV.
func oneEnd(text string) string { return strings.TrimSuffix(text, "\n") }

// row returns the cells of a task, and whether it has values in other_columns.
func (c *columns) row(t *manager.Task, names []string) (row []string, other bool) {
	cells := fixedCells(t)
	if slices.ContainsFunc(names, isPrinted) {
		cells["output"], cells["error"] = oneEnd(t.Output()), oneEnd(t.Stderr())
	}
	c.putAll(cells, t)
	row = make([]string, len(names))
	var encoded []string
	text := func(name string) string {
		if isText(cells[name]) {
			return cells[name]
		}
		encoded = append(encoded, name)
		return base64.StdEncoding.EncodeToString([]byte(cells[name]))
	}
	for i, name := range names {
		row[i] = text(name)
	}
	if i := slices.Index(names, otherColumn); i >= 0 {
		row[i] = c.others(t, names, text)
		other = row[i] != ""
	}
	if i := slices.Index(names, encodedColumn); i >= 0 {
		row[i] = strings.Join(encoded, " ")
	}
	return row, other
}

// others returns the cells of a task that have no column, as a JSON object, or "" if there are none.
func (c *columns) others(t *manager.Task, names []string, text func(string) string) string {
	cells := map[string]string{}
	for _, name := range slices.Concat(oddColumns, c.order[c.begun[0]:], c.resultOrder[c.begun[1]:]) {
		if name == replacedColumn && !t.InputReplaced || slices.Contains(names, name) {
			continue
		}
		if value := text(name); value != "" {
			cells[name] = value
		}
	}
	if len(cells) == 0 {
		return ""
	}
	encoded, _ := json.Marshal(cells) // texts have no error
	return string(encoded)
}

// isPrinted reports whether a column needs a task's stdout or stderr.
func isPrinted(name string) bool { return slices.Contains(printedColumns, name) }

// putAll sets the cells of a task's parameters and results.
func (c *columns) putAll(cells map[string]string, t *manager.Task) {
	c.put(cells, c.parameters, t.Meta, fieldsOf(t.Meta))
	text, fields := c.resultFields(t)
	c.put(cells, c.results, text, fields)
}

// put sets the cells of the fields of a text. If fields have no columns, the column of whole texts has the text.
func (c *columns) put(cells, of map[string]string, text string, fields []field) {
	unknown := func(f field) bool { return of[f.key] == "" }
	if of[wholeKey] != "" && slices.ContainsFunc(fields, unknown) {
		fields = whole(text)
	}
	for _, f := range fields {
		if name, known := of[f.key]; known {
			cells[name] = f.text()
		}
	}
}

// isText reports whether a text may stand in a CSV without base64. Programs that read CSV expect UTF-8 without NUL.
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// fixedCells returns the cells of the fixed columns by the columns' names. It leaves out output, error and base64.
func fixedCells(t *manager.Task) map[string]string {
	cells := map[string]string{
		"id": strconv.FormatInt(t.ID, 10), "campaign": t.Group, "program": t.Program, "input": t.Input,
		"state": string(t.State), "outcome": t.Outcome, "round": strconv.Itoa(t.Round), "opened": stamp(t.Opened),
	}
	cells[replacedColumn], cells[namespaceColumn] = strconv.FormatBool(t.InputReplaced), t.Namespace
	cells[resourcesColumn] = t.Definition.Resources
	r := t.LastRun()
	if r == nil {
		return cells
	}
	cells["run"], cells["worker"], cells["exit"] = strconv.Itoa(r.Number), r.Worker, r.Exit
	cells["started"], cells["ended"], cells["program_sha256"] = stamp(r.Started), stamp(r.Ended), r.ProgramSHA256
	if r.RunTime > 0 {
		cells["seconds"], cells["cpu_seconds"] = tdf.For(r.RunTime).String(), tdf.For(r.CPUTime).String()
	}
	if r.MaxRSS > 0 {
		cells["max_rss"] = strconv.FormatInt(r.MaxRSS, 10)
	}
	if r.Output != "" || r.OutputBytes > 0 {
		cells["output_whole"] = strconv.FormatBool(r.OutputWhole())
	}
	return cells
}

// stamp formats a time: RFC 3339 in UTC, to the microsecond. It returns "" for the zero time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00")
}

// A field is a key of a JSON object, with its value.
type field struct {
	key   string
	value json.RawMessage
}

// fieldsOf returns the fields of a JSON object in their order. An empty text has no fields. Any other text
// is one field with the key wholeKey.
func fieldsOf(text string) []field {
	if text == "" {
		return nil
	}
	object, ok := jsonview.ParseObject(text)
	if !ok {
		return whole(text)
	}
	d := json.NewDecoder(bytes.NewReader(object))
	d.Token() // {
	var all []field
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			break // cannot happen, because the JSON is valid
		}
		all = append(all, field{key.(string), value})
	}
	return all
}

// maxLastLine is the maximum length of a last line with fields, in bytes. A longer line is data, not a summary of the
// run.
const maxLastLine = 64 << 10

// lastLine returns the last line of an output that is not blank. If this line is longer than maxLastLine, it returns
// "".
func lastLine(output string) string {
	output = strings.TrimRight(output, " \t\r\n")
	line := output[max(0, len(output)-maxLastLine-1):]
	if i := strings.LastIndexAny(line, "\r\n"); i >= 0 || len(line) <= maxLastLine {
		return line[i+1:]
	}
	return ""
}

// maxLeftOut is how many names of fields without a column are kept.
const maxLeftOut = 10

// numbersOf returns the fields of a JSON object whose values are numbers, and keeps the names of the others. Any other
// text has no fields.
func (c *columns) numbersOf(text string) []field {
	if _, ok := jsonview.ParseObject(text); !ok {
		return nil
	}
	return slices.DeleteFunc(fieldsOf(text), func(f field) bool {
		if strings.ContainsRune("-0123456789", rune(f.value[0])) {
			return false
		}
		isNull := f.value[0] == 'n' // its cell is empty anyway
		if !isNull && len(c.leftOut) < maxLeftOut && !slices.Contains(c.leftOut, f.key) {
			c.leftOut = append(c.leftOut, f.key)
		}
		return true
	})
}

// text returns the value for a cell: a string without quotes, a number with the same digits, "" for null, or compact
// JSON for an array or object.
func (f *field) text() string {
	var s string
	var compact bytes.Buffer
	switch {
	case f.key == wholeKey && !json.Valid(f.value):
		return string(f.value)
	case string(bytes.TrimSpace(f.value)) == "null":
		return ""
	case json.Unmarshal(f.value, &s) == nil:
		return s
	case json.Compact(&compact, f.value) == nil:
		return compact.String()
	}
	return string(f.value)
}
