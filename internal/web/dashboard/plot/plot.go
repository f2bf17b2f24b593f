// Package plot draws the results of campaigns: values over parameters, as SVG and as PNG, of any number of rows.
//
// The code is TDF's own, because the plots must be in pages whose Content-Security-Policy allows neither styles nor
// scripts in them, and must stay small and readable whatever the programs have printed: with a million rows, texts of a
// megabyte, or values that are no numbers. A Figure is a list of few shapes. The files svg.go and png.go write the same
// shapes, so that both look alike.
package plot

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
)

// A Kind is a kind of plots.
type Kind string

// The kinds of plots.
const (
	Scatter Kind = "scatter" // a dot for each row; of many rows, the density
	Line    Kind = "line"    // the median of y for each x, and the band from its 10 % to its 90 % quantile
	Heat    Kind = "heat"    // the median of the colour for each x and y, or the number of rows
)

// Kinds are all kinds.
var Kinds = []Kind{Scatter, Line, Heat}

// A Scale is a way to place numbers on an axis.
type Scale string

// The scales.
const (
	Auto   Scale = "auto" // Log for positive numbers over at least three decades, otherwise Linear
	Linear Scale = "linear"
	Log    Scale = "log"
)

// Scales are all scales.
var Scales = []Scale{Auto, Linear, Log}

// A Column has a value for each row.
type Column struct {
	Name string
	// Numbers are the values of a column of numbers; NaN means no value. Values beyond ±1e300 are not drawn.
	Numbers []float64
	// Codes are the values of a column of texts, as indexes of Texts; -1 means no value. If Codes is nil, this is a
	// column of numbers.
	Codes []int32
	Texts []string
}

// A Spec says what to draw. The columns have the same number of rows.
type Spec struct {
	Kind           Kind
	X, Y           *Column
	Colour, Facet  *Column // nil for none
	XScale, YScale Scale   // "" means Auto
}

// Bounds of a figure, whatever its data are.
const (
	mostPanels  = 12
	mostSeries  = 8
	mostBands   = 30   // texts on an axis; the rest is "other"
	mostDots    = 4000 // more rows are drawn as density
	mostNumbers = 200  // rows of Figure.Numbers
	largest     = 1e300
)

// A Figure is a drawn plot.
type Figure struct {
	Title       string
	Description string     // says what the figure shows, for people who do not see it
	Notes       []string   // say what the figure leaves out
	Head        []string   // the names of the columns of Numbers
	Numbers     [][]string // the quantiles that the figure shows, for people who do not see it; at most 200 rows

	width, height float64
	shapes        []shape
}

// errNumbers says that the values of an axis must be numbers.
func errNumbers(kind Kind, c *Column) error {
	return task.NewError(task.CodeInvalid, fmt.Sprintf("draw %s: the values of %s must be numbers; choose another "+
		"column, or scatter", kind, label(c.Name)))
}

// Draw draws a figure. The error says that the kind does not fit the columns.
func Draw(s Spec) (*Figure, error) {
	d := &drawing{
		Spec: s, Figure: &Figure{}, rows: rowsOf(s.X), facets: split(s.Facet, mostPanels),
		colours: split(s.Colour, mostSeries),
	}
	var err error
	switch s.Kind {
	case Line:
		err = d.line()
	case Heat:
		err = d.heat()
	default:
		err = d.scatter()
	}
	if err != nil {
		return nil, err
	}
	if d.left > 0 {
		d.Notes = append(d.Notes, format.Counted(d.left, "row")+
			" not shown, because a value is missing, or has no place on its axis")
	}
	if len(d.Numbers) > mostNumbers {
		d.Notes = append(d.Notes, fmt.Sprintf("the table has the first %d of %d rows; the CSV has all", mostNumbers,
			len(d.Numbers)))
		d.Numbers = d.Numbers[:mostNumbers]
	}
	return d.Figure, nil
}

// A drawing makes a figure.
type drawing struct {
	Spec
	*Figure
	rows            int
	facets, colours groups
	x, y            *axis
	panels          []panel
	left            int // rows that are not shown
}

// rowsOf returns the number of rows of a column.
func rowsOf(c *Column) int {
	if c.Codes != nil {
		return len(c.Codes)
	}
	return len(c.Numbers)
}

// number returns a number that can be drawn, or NaN.
func number(v float64) float64 {
	if math.Abs(v) > largest {
		return math.NaN()
	}
	return v
}

// label returns a text for the figure, without characters that change how other texts look.
func label(text string) string {
	if len(text) > 400 { // OneLine would read all of it
		text = strings.ToValidUTF8(text[:400], "")
	}
	return format.OneLine(text, 40)
}

// groups divides the rows by the values of a column.
type groups struct {
	name   string
	labels []string
	of     []int32 // the group of each row, or -1; nil if all rows are in one group
	scale  bool    // the groups are in the order of numbers
}

// at returns the group of a row, or -1.
func (g *groups) at(row int) int {
	if g.of == nil {
		return 0
	}
	return int(g.of[row])
}

// split divides the rows by the values of a column into at most the given number of groups. A nil column makes one
// group. Of many texts, the most frequent have groups, and the others share one. Many numbers are divided into ranges.
func split(c *Column, most int) groups {
	if c == nil {
		return groups{labels: []string{""}}
	}
	of := c
	if c.Codes == nil {
		if of = banded(c, most); of == nil {
			return ranges(c, 6)
		}
	}
	codes, texts := fewest(of, most)
	return groups{label(c.Name), texts, codes, c.Codes == nil}
}

// banded returns a column of numbers as a column of texts in the order of the numbers, or nil if there are more than
// the given number of values.
func banded(c *Column, most int) *Column {
	seen := map[float64]int32{}
	for _, v := range c.Numbers {
		if v = number(v); !math.IsNaN(v) {
			seen[v] = 0
			if len(seen) > most {
				return nil
			}
		}
	}
	b := &Column{Name: c.Name, Codes: make([]int32, len(c.Numbers))}
	for i, v := range slices.Sorted(maps.Keys(seen)) {
		seen[v] = int32(i)
		b.Texts = append(b.Texts, text(v))
	}
	for i, v := range c.Numbers {
		code, known := seen[v]
		if !known {
			code = -1
		}
		b.Codes[i] = code
	}
	return b
}

// ranges divides numbers into ranges of the same width on their scale.
func ranges(c *Column, n int) groups {
	p := divide(axisOf(c, Auto, n), n)
	g := groups{name: label(c.Name), labels: p.labels, scale: true}
	for row := range c.Numbers {
		g.of = append(g.of, int32(p.of(row)))
	}
	return g
}

// fewest returns the codes and texts of a column whose rare texts are "other", so that there are at most the given
// number of texts. Texts that look the same stay apart. The texts of numbers keep their order, because their column was
// made in this order.
func fewest(c *Column, most int) (codes []int32, texts []string) {
	counts := make([]int, len(c.Texts))
	for _, code := range c.Codes {
		if code >= 0 {
			counts[code]++
		}
	}
	var used []int
	for i, n := range counts {
		if n > 0 {
			used = append(used, i)
		}
	}
	rest := 0
	if len(used) > most {
		slices.SortStableFunc(used, func(a, b int) int { return counts[b] - counts[a] })
		rest = len(used) - (most - 1)
		used = used[:most-1]
	}
	slices.SortFunc(used, func(a, b int) int { return natural(c.Texts, a, b) })
	to := make([]int32, len(c.Texts))
	for i := range to {
		to[i] = int32(len(used)) // other
	}
	for i, code := range used {
		to[code] = int32(i)
		texts = append(texts, label(c.Texts[code]))
	}
	if rest > 0 {
		texts = append(texts, fmt.Sprintf("%d others", rest))
	}
	if len(texts) == 0 {
		texts = []string{"no value"}
	}
	codes = make([]int32, len(c.Codes))
	for i, code := range c.Codes {
		codes[i] = -1
		if code >= 0 {
			codes[i] = to[code]
		}
	}
	return codes, texts
}
