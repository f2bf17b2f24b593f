package results

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

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
			return result, readable(t, fieldsOf(result))
		}
	}
	line := lastLine(t.Output())
	return line, c.numbersOf(line)
}

// readable leaves out the pickle that a function in Python has returned (docs/python.md, "Run functions").
func readable(t *manager.Task, fields []field) []field {
	if t.Program != task.FunctionProgram {
		return fields
	}
	return slices.DeleteFunc(fields, func(f field) bool { return f.key == "pickle" })
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
		"id": strconv.FormatInt(t.ID, 10), "campaign": t.Group, "program": t.Program, "input": t.Label(),
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
		cells["seconds"], cells["cpu_seconds"] = task.For(r.RunTime).String(), task.For(r.CPUTime).String()
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
