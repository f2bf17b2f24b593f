package plot

import (
	"fmt"
	"math"
	"slices"

	"github.com/tdf-framework/tdf/internal/format"
)

// cell is the width of a square of the density, in pixels.
const cell = 6

// scatter draws a dot for each row. If there are too many rows, it draws squares, in the colour of the group that has
// most rows there.
func (d *drawing) scatter() error {
	d.x, d.y = axisOf(d.X, d.XScale, mostBands), axisOf(d.Y, d.YScale, mostBands)
	d.x.widen()
	d.y.widen()
	shown := 0
	for row := range d.rows {
		if d.shows(row) {
			shown++
		}
	}
	d.left = d.rows - shown
	dense := shown > mostDots
	if dense && d.Colour == nil {
		d.lay(scaleKeys("few", "many rows"), "Density")
	} else {
		d.lay(d.seriesKeys(), d.colours.name)
	}
	if dense {
		d.Notes = append(d.Notes, fmt.Sprintf("%s, drawn as density", format.Counted(shown, "row")))
		d.density()
	} else {
		d.dots()
	}
	d.describe(d.y.name+" over "+d.x.name, fmt.Sprintf("Scatter plot of %s", format.Counted(shown, "row")))
	d.tabulate(10)
	return nil
}

// shows reports whether a row has a place in the figure.
func (d *drawing) shows(row int) bool {
	return d.facets.at(row) >= 0 && d.colours.at(row) >= 0 && !math.IsNaN(d.x.at(row)) && !math.IsNaN(d.y.at(row))
}

func (d *drawing) dots() {
	points := make([][]point, len(d.panels)*len(d.colours.labels))
	for row := range d.rows {
		if d.shows(row) {
			of := d.facets.at(row)
			i := of*len(d.colours.labels) + d.colours.at(row)
			points[i] = append(points[i], d.panels[of].at(d.x.at(row), d.y.at(row)))
		}
	}
	for i, of := range points {
		d.add(shape{kind: dots, class: d.colours.class(i % len(d.colours.labels)), points: of, size: 5, faint: 0.3})
	}
}

func (d *drawing) density() {
	type square struct{ panel, x, y int }
	counts := map[square][]int{}
	most := 0
	for row := range d.rows {
		if !d.shows(row) {
			continue
		}
		of := d.facets.at(row)
		p := d.panels[of].at(d.x.at(row), d.y.at(row))
		at := square{of, int(p.x-d.panels[of].left) / cell, int(p.y-d.panels[of].top) / cell}
		if counts[at] == nil {
			counts[at] = make([]int, len(d.colours.labels)+1) // the last element is the sum
		}
		counts[at][d.colours.at(row)]++
		counts[at][len(d.colours.labels)]++
		most = max(most, counts[at][len(d.colours.labels)])
	}
	points := map[string][]point{}
	for at, n := range counts {
		all := n[len(n)-1]
		class := step(int(math.Log(float64(all))/math.Log(float64(max(2, most)))*(steps-1)), steps)
		if d.Colour != nil {
			first := slices.Index(n[:len(n)-1], slices.Max(n[:len(n)-1]))
			class = d.colours.class(first)
		}
		p := d.panels[at.panel]
		points[class] = append(points[class], point{
			min(p.left+float64(at.x*cell)+cell/2, p.left+p.width-cell/2),
			min(p.top+float64(at.y*cell)+cell/2, p.top+p.height-cell/2),
		})
	}
	for _, class := range sortedKeys(points) {
		slices.SortFunc(points[class], func(a, b point) int { return compare(a.y, b.y, a.x, b.x) })
		d.add(shape{kind: squares, class: class, points: points[class], size: cell})
	}
}
