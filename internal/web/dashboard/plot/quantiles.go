package plot

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
)

// A bin has the numbers of some rows.
type bin struct {
	numbers       []float64
	low, mid, top float64 // the quantiles of 10, 50 and 90 %
}

// place names a bin: its panel, its group of colours, and its part of each axis.
type place struct{ panel, colour, x, y int }

// Parts are the parts of an axis for which a figure shows quantiles.
type parts struct {
	labels  []string
	middles []float64 // where they are on the axis
	of      func(row int) int
}

// divide divides an axis into at most the given number of parts: its bands, its values if there are few, or parts of
// the same width.
func divide(a *axis, most int) parts {
	if a.bands != nil {
		p := parts{labels: a.bands, of: func(row int) int { return int(a.codes[row]) }}
		for i := range a.bands {
			p.middles = append(p.middles, a.middle(i))
		}
		return p
	}
	if b := banded(a.column, most); b != nil {
		p := parts{labels: b.Texts, of: func(row int) int { return int(b.Codes[row]) }}
		p.middles = make([]float64, len(b.Texts))
		for row, code := range b.Codes {
			if code >= 0 {
				p.middles[code] = a.at(row)
			}
		}
		return p
	}
	p := parts{of: func(row int) int {
		if at := a.at(row); !math.IsNaN(at) {
			return min(most-1, int(at*float64(most)))
		}
		return -1
	}}
	for i := range most {
		p.middles = append(p.middles, (float64(i)+0.5)/float64(most))
		p.labels = append(p.labels, text(a.value(float64(i)/float64(most)))+" to "+
			text(a.value(float64(i+1)/float64(most))))
	}
	return p
}

// along returns the place of each row along the axis x.
func (d *drawing) along(x parts) func(row int) (place, bool) {
	return func(row int) (place, bool) {
		at := place{d.facets.at(row), d.colours.at(row), x.of(row), 0}
		return at, at.panel >= 0 && at.colour >= 0 && at.x >= 0 && !math.IsNaN(d.x.at(row))
	}
}

// bins collects the numbers of a column by their places, and returns how many rows have none.
func (d *drawing) bins(of *Column, where func(row int) (place, bool)) (all map[place]*bin, left int) {
	all = map[place]*bin{}
	for row := range d.rows {
		at, ok := where(row)
		v := 1.0
		if of != nil {
			v = number(of.Numbers[row])
		}
		if !ok || math.IsNaN(v) {
			left++
			continue
		}
		if all[at] == nil {
			all[at] = &bin{}
		}
		all[at].numbers = append(all[at].numbers, v)
	}
	for _, b := range all {
		slices.Sort(b.numbers)
		b.low, b.mid, b.top = quantile(b.numbers, 0.1), quantile(b.numbers, 0.5), quantile(b.numbers, 0.9)
	}
	return all, left
}

// quantile returns a quantile of sorted numbers, between the two that are next to it.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	part := at - float64(i)
	return sorted[i]*(1-part) + sorted[i+1]*part
}

// tabulate fills the table of a figure with the quantiles of y, for each part of x.
func (d *drawing) tabulate(most int) {
	of := divide(d.x, most)
	y := d.Y
	if y.Codes != nil {
		y = nil
	}
	all, _ := d.bins(y, d.along(of))
	d.table(all, []string{d.x.name}, y != nil, d.y.name, func(at place) []string { return []string{of.labels[at.x]} })
}

// table fills the table of a figure. The functions names what of the axes a place is.
func (d *drawing) table(all map[place]*bin, heads []string, quantiles bool, of string, names func(place) []string) {
	if d.facets.name != "" {
		d.Head = append(d.Head, d.facets.name)
	}
	colours := d.Kind != Heat && d.colours.name != ""
	if colours {
		d.Head = append(d.Head, d.colours.name)
	}
	d.Head = append(append(d.Head, heads...), "rows")
	if quantiles {
		d.Head = append(d.Head, "median of "+of, "10 %", "90 %")
	}
	for _, at := range slices.SortedFunc(maps.Keys(all), comparePlaces) {
		var row []string
		if d.facets.name != "" {
			row = append(row, d.facets.labels[at.panel])
		}
		if colours {
			row = append(row, d.colours.labels[at.colour])
		}
		b := all[at]
		row = append(append(row, names(at)...), strconv.Itoa(len(b.numbers)))
		if quantiles {
			row = append(row, text(b.mid), text(b.low), text(b.top))
		}
		d.Numbers = append(d.Numbers, row)
	}
}

func comparePlaces(a, b place) int {
	return cmp.Or(a.panel-b.panel, a.colour-b.colour, a.x-b.x, a.y-b.y)
}

func compare(a, b, c, d float64) int { return cmp.Or(cmp.Compare(a, b), cmp.Compare(c, d)) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
