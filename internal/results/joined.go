package results

import (
	"math"
	"slices"
	"strconv"
)

// Joined are the tables of several namespaces as one: the rows of the first, then those of the second, and so on. Each
// row stands for as many tasks as those of its own table.
type Joined []*Table

// Status says what the tables have together. OneOf is that of the table with the fewest tasks of its campaign.
func (all Joined) Status() (s TableStatus) {
	for _, t := range all {
		of := t.Status()
		for _, names := range [][2]*[]string{{&s.Names, &of.Names}, {&s.Results, &of.Results}} {
			for _, name := range *names[1] {
				if !slices.Contains(*names[0], name) {
					*names[0] = append(*names[0], name)
				}
			}
		}
		s.Rows, s.OneOf = s.Rows+of.Rows, max(s.OneOf, of.OneOf)
		s.Behind, s.Looked, s.Of = s.Behind || of.Behind, s.Looked+of.Looked, s.Of+of.Of
	}
	return s
}

// Columns does the same as [Table.Columns]. A column has texts if it has texts in one of the tables.
func (all Joined) Columns(names ...string) []*Column {
	parts, rows := make([][]*Column, len(all)), make([]int, len(all))
	for i, t := range all {
		parts[i], rows[i] = t.columnsOf(names)
	}
	joined := make([]*Column, len(names))
	for k, name := range names {
		columns := make([]*Column, len(all))
		for i := range all {
			columns[i] = parts[i][k]
		}
		joined[k] = join(name, columns, rows)
	}
	return joined
}

// join returns the column of several tables with these numbers of rows. A table may lack the column. If all lack it,
// join returns nil.
func join(name string, columns []*Column, rows []int) *Column {
	sum, known, row := &Column{Name: name}, false, 0
	for i, c := range columns {
		known = known || c != nil
		for k := range rows[i] {
			value := ""
			switch {
			case c == nil:
			case c.Codes == nil && !math.IsNaN(c.Numbers[k]):
				value = strconv.FormatFloat(c.Numbers[k], 'g', -1, 64)
			case c.Codes != nil && c.Codes[k] >= 0:
				value = c.Texts[c.Codes[k]]
			}
			sum.set(row, value)
			row++
		}
	}
	if !known {
		return nil
	}
	return sum
}
