package main

import (
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// A sheet is rows under a heading: on a terminal in columns, else with tabs between them.
type sheet struct {
	a    *app
	rows [][]string // the first is the heading

	headless bool // it goes on with another one
}

func (a *app) sheet(heading ...string) *sheet {
	for i := range heading {
		heading[i] = strings.ToUpper(heading[i])
	}
	return &sheet{a: a, rows: [][]string{heading}}
}

func (s *sheet) row(columns ...string) { s.rows = append(s.rows, columns) }

// write writes the sheet to stdout.
func (s *sheet) write() error {
	rendered := ""
	if s.a.style.out {
		rendered = s.columns()
	} else {
		rendered = s.tabs()
	}
	_, err := io.WriteString(s.a.stdout, rendered)
	return err
}

func (s *sheet) shown() [][]string {
	if s.headless {
		return s.rows[1:]
	}
	return s.rows
}

// flat keeps a cell in its row and its column.
var flat = strings.NewReplacer("\t", " ", "\n", " ", "\r", " ")

// cell returns text as it may stand in a table: on one line, with control characters spelt out.
func cell(text string) string { return printable(flat.Replace(text)) }

func (s *sheet) tabs() string {
	var b strings.Builder
	for _, row := range s.shown() {
		for i, column := range row {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(cell(column))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (s *sheet) columns() string {
	w := table.NewWriter()
	w.SetStyle(table.StyleDefault)
	w.Style().Options = table.OptionsNoBordersAndSeparators
	w.Style().Box.PaddingLeft, w.Style().Box.PaddingRight = "", "  "
	w.SetAllowedRowLength(s.a.style.width)
	for i, row := range s.shown() {
		w.AppendRow(s.cells(row, i == 0 && !s.headless))
	}
	return w.Render() + "\n"
}

// cells colours, where there is colour, the heading and what says how well something is.
func (s *sheet) cells(columns []string, heading bool) table.Row {
	row := make(table.Row, len(columns))
	for i, c := range columns {
		c = cell(c)
		switch colour := colours[c]; {
		case !s.a.style.colour:
		case heading:
			c = text.Bold.Sprint(c)
		case colour != 0 && s.rows[0][i] == "STATE":
			c = colour.Sprint(c)
		}
		row[i] = c
	}
	return row
}

// colours of states, of tasks and of workers.
var colours = map[string]text.Color{
	"succeeded": text.FgGreen, "failed": text.FgRed, "timed_out": text.FgRed, "expired": text.FgYellow, "running": text.FgCyan,
	"working": text.FgGreen, "draining": text.FgYellow, "silent": text.FgRed,
}
