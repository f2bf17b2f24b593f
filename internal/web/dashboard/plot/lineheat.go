package plot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// line draws, for each group of colours, the median of y over x, and the band from its 10 % to its 90 % quantile.
func (d *drawing) line() error {
	if d.Y.Codes != nil {
		return errNumbers(Line, d.Y)
	}
	d.x = axisOf(d.X, d.XScale, mostBands)
	most := 60
	if len(d.facets.labels) > 1 {
		most = 30
	}
	of := divide(d.x, most)
	all, left := d.bins(d.Y, d.along(of))
	var ends []float64
	for _, b := range all {
		ends = append(ends, b.low, b.top)
	}
	d.left, d.y = left, numberAxis(d.Y.Name, ends, d.YScale)
	if d.y.log && slices.ContainsFunc(ends, func(v float64) bool { return v <= 0 }) {
		d.Notes = append(d.Notes, "a logarithmic axis has no place for zero and negative numbers")
	}
	d.middles(of.middles)
	d.x.widen()
	d.y.widen()
	d.lay(d.seriesKeys(), d.colours.name)
	for panel := range d.panels {
		for colour := range d.colours.labels {
			d.series(all, panel, colour, of.middles)
		}
	}
	slices.SortStableFunc(d.shapes, func(a, b shape) int { return above(a) - above(b) })
	d.describe("Median of "+d.y.name+" over "+d.x.name,
		"Lines of medians, with bands from the 10 % to the 90 % quantile")
	d.table(all, []string{d.x.name}, true, d.y.name, func(at place) []string { return []string{of.labels[at.x]} })
	return nil
}

// middles moves the middles of the parts of the axis x to where they are after widen has made room.
func (d *drawing) middles(of []float64) {
	if d.x.bands == nil {
		for i := range of {
			of[i] = (of[i] + 0.03) / 1.06
		}
	}
}

// above says which shapes cover others: lines cover all bands.
func above(s shape) int {
	if s.kind == lines && s.class != "rule" || s.kind == dots {
		return 1
	}
	return 0
}

// series draws the line and the band of a group of colours in a panel.
func (d *drawing) series(all map[place]*bin, panel, colour int, middles []float64) {
	order := make([]int, len(middles))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(middles[a], middles[b]) })
	var medians, low, high []point
	p := d.panels[panel]
	for _, x := range order {
		if b := all[place{panel, colour, x, 0}]; b != nil && (!d.y.log || b.low > 0) {
			medians = append(medians, p.at(middles[x], d.y.place(b.mid)))
			low, high = append(low, p.at(middles[x], d.y.place(b.low))),
				append(high, p.at(middles[x], d.y.place(b.top)))
		}
	}
	slices.Reverse(low)
	class := d.colours.class(colour)
	if len(medians) > 1 {
		d.add(shape{kind: area, class: class, points: append(high, low...), faint: 0.8})
		d.add(shape{kind: lines, class: class, points: medians, size: 2})
	}
	d.add(shape{kind: dots, class: class, points: medians, size: 4})
}

// heat draws the median of the colour for each x and y, or the number of rows.
func (d *drawing) heat() error {
	if d.Colour != nil && d.Colour.Codes != nil {
		return errNumbers(Heat, d.Colour)
	}
	most := 50
	if len(d.facets.labels) > 1 {
		most = 24
	}
	d.x, d.y = d.parted(d.X, d.XScale, most), d.parted(d.Y, d.YScale, most)
	x, y := divide(d.x, most), divide(d.y, most)
	all, left := d.bins(d.Colour, func(row int) (place, bool) {
		at := place{d.facets.at(row), 0, x.of(row), y.of(row)}
		return at, at.panel >= 0 && at.x >= 0 && at.y >= 0
	})
	d.left = left
	value := func(b *bin) float64 { return b.mid }
	what, of := "Rows", ""
	if d.Colour == nil {
		value = func(b *bin) float64 { return float64(len(b.numbers)) }
	} else {
		of = label(d.Colour.Name)
		what = "Median of " + of
	}
	var values []float64
	for _, b := range all {
		values = append(values, value(b))
	}
	scale := numberAxis(what, values, Auto)
	d.colours = groups{labels: []string{""}}
	d.lay(scaleKeys(text(scale.value(0)), text(scale.value(1))), what)
	cells := map[string][]point{}
	for _, at := range slices.SortedFunc(maps.Keys(all), comparePlaces) {
		p := d.panels[at.panel]
		halfX, halfY := 0.5/float64(len(x.middles)), 0.5/float64(len(y.middles))
		class := step(int(scale.place(value(all[at]))*steps), steps)
		cells[class] = append(cells[class], p.at(x.middles[at.x]-halfX, y.middles[at.y]+halfY),
			p.at(x.middles[at.x]+halfX, y.middles[at.y]-halfY))
	}
	for _, class := range sortedKeys(cells) {
		d.add(shape{kind: rectangles, class: class, points: cells[class]})
	}
	d.describe(what+" over "+d.x.name+" and "+d.y.name, fmt.Sprintf("Heat map. %s: from %s to %s", what,
		text(scale.value(0)), text(scale.value(1))))
	d.table(all, []string{d.x.name, d.y.name}, d.Colour != nil, of, func(at place) []string {
		return []string{x.labels[at.x], y.labels[at.y]}
	})
	return nil
}

// parted returns an axis with a band for each value if there are few, so that the points of a grid are cells of the
// same size.
func (d *drawing) parted(c *Column, s Scale, most int) *axis {
	if c.Codes == nil {
		if b := banded(c, most); b != nil {
			return bandAxis(b, c.Name, most)
		}
	}
	return axisOf(c, s, mostBands)
}
