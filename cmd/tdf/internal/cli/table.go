package cli

import (
	"io"
	"strings"

	pretty "github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
)

// A table prints rows under a heading. On a terminal, columns are aligned; otherwise, tabs separate the cells.
type table struct {
	a    *App
	rows [][]string // the first row is the heading

	Headless bool // the heading was printed before
}

func (a *App) Table(heading ...string) *table {
	for i := range heading {
		heading[i] = strings.ToUpper(heading[i])
	}
	return &table{a: a, rows: [][]string{heading}}
}

func (t *table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Write writes the table to stdout.
func (t *table) Write() error {
	written := t.tabs()
	if t.a.Terminal.Out {
		written = t.columns()
	}
	_, err := io.WriteString(t.a.Stdout, written)
	return err
}

func (t *table) visible() [][]string {
	if t.Headless {
		return t.rows[1:]
	}
	return t.rows
}

// flat is a replacer that puts blanks in place of tabs and newlines, because these would end a cell or a row.
var flat = strings.NewReplacer("\t", " ", "\n", " ", "\r", " ")

// cell returns a value on one line, with control characters escaped.
func cell(value string) string { return format.Printable(flat.Replace(value)) }

func (t *table) tabs() string {
	var b strings.Builder
	for _, row := range t.visible() {
		for i, value := range row {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(cell(value))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (t *table) columns() string {
	w := pretty.NewWriter()
	w.SetStyle(pretty.StyleDefault)
	w.Style().Options = pretty.OptionsNoBordersAndSeparators
	w.Style().Box.PaddingLeft, w.Style().Box.PaddingRight = "", "  "
	w.SetAllowedRowLength(t.a.Terminal.Width)
	for i, row := range t.visible() {
		w.AppendRow(t.colourRow(row, i == 0 && !t.Headless))
	}
	return w.Render() + "\n"
}

// colourRow returns a row with the heading in bold and states in colour, if the terminal shows colours.
func (t *table) colourRow(cells []string, heading bool) pretty.Row {
	row := make(pretty.Row, len(cells))
	for i, c := range cells {
		c = cell(c)
		switch colour := colours[c]; {
		case !t.a.Terminal.colour:
		case heading:
			c = text.Bold.Sprint(c)
		case colour != 0 && t.rows[0][i] == "STATE":
			c = colour.Sprint(c)
		}
		row[i] = c
	}
	return row
}

// colours maps states of tasks and workers to their colours.
var colours = map[string]text.Color{
	string(task.Succeeded): text.FgGreen, string(task.Failed): text.FgRed, string(task.TimedOut): text.FgRed,
	string(task.Expired): text.FgYellow, string(task.Running): text.FgCyan,
	admin.WorkerWorking: text.FgGreen, admin.WorkerDraining: text.FgYellow, admin.WorkerSilent: text.FgRed,
}
