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
	oddColumns      = []string{replacedColumn, resourcesColumn, namespaceColumn}
)

// Written says what [CSV] has written.
type Written struct {
	Rows    int
	Late    int      // number of values without a column, because tasks changed meanwhile
	LeftOut []string // names of fields of last lines that have no column, because they are no numbers; at most 10
}

// CSV writes a row for each task of a Source, sorted by id. It reads the tasks twice: first for the columns, then for
// the rows.
func CSV(all Source, out io.Writer, o Options) (done Written, err error) {
	c := newColumns(o.Fields)
	defer func() { done.Late, done.LeftOut = c.late, c.leftOut }()
	fromOutput := o.Fields != FromResult
	for t, err := range all(reading(fromOutput)) {
		if err != nil {
			return done, err
		}
		before := c.memory()
		c.collect(t)
		if o.Charge == nil {
			continue
		}
		if err := o.Charge(c.memory() - before); err != nil {
			return done, err
		}
	}
	w := csv.NewWriter(out)
	names, err := choose(c.names(o.Output), o.Columns)
	if err != nil {
		return done, err
	}
	names, err = o.begin(w, out, names)
	if err != nil {
		return done, err
	}
	for t, err := range all(reading(fromOutput || slices.ContainsFunc(names, isPrinted))) {
		if err != nil {
			return done, err
		}
		if err := writeRow(w, out, o.change(c.row(t, names))); err != nil {
			return done, err
		}
		done.Rows++
	}
	w.Flush()
	return done, w.Error()
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
	late                int               // number of values that have no column
	leftOut             []string          // names of fields of last lines that are no numbers
}

func newColumns(source string) *columns {
	c := &columns{
		source: source, parameters: map[string]string{}, results: map[string]string{},
		taken: map[string]bool{},
	}
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
	return append(names, lastColumns...)
}

// oneEnd removes one newline at the end, so that the output of most programs stays on one line of the CSV.
func oneEnd(text string) string { return strings.TrimSuffix(text, "\n") }

// row returns the cells of a task.
func (c *columns) row(t *manager.Task, names []string) []string {
	cells := fixedCells(t)
	if slices.ContainsFunc(names, isPrinted) {
		cells["output"], cells["error"] = oneEnd(t.Output()), oneEnd(t.Stderr())
	}
	c.putAll(cells, t)
	row := make([]string, len(names))
	var encoded []string
	for i, name := range names {
		row[i] = cells[name]
		if !isText(row[i]) {
			row[i] = base64.StdEncoding.EncodeToString([]byte(row[i]))
			encoded = append(encoded, name)
		}
	}
	if i := slices.Index(names, encodedColumn); i >= 0 {
		row[i] = strings.Join(encoded, " ")
	}
	return row
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
		name, known := of[f.key]
		if !known {
			c.late++
			continue
		}
		cells[name] = f.text()
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
