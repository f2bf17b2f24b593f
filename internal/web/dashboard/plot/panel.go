package plot

import (
	"math"
	"strings"
)

// Sizes of a figure.
const (
	figureWidth = 760.0
	letter      = 7.3 // about the width of a letter
	lineHeight  = 16.0
	gap         = 14.0
)

// A panel is the frame of one group of facets.
type panel struct{ left, top, width, height float64 }

func (p panel) at(x, y float64) point { return point{p.left + x*p.width, p.top + (1-y)*p.height} }

// lay places the panels, and draws titles, legend, frames and axes.
func (d *drawing) lay(legend []key, legendName string) {
	n := len(d.facets.labels)
	columns := min(n, 1+int(math.Sqrt(float64(n))*0.9))
	top := d.legend(legend, legendName)
	labels := 0.0
	for _, t := range d.y.ticks(8) {
		labels = max(labels, letter*float64(len([]rune(t.label))))
	}
	labels = min(labels, 150) + 10
	width := (figureWidth-labels)/float64(columns) - gap
	height := max(130, min(380, width*0.6))
	title := lineHeight
	if n > 1 {
		title += lineHeight
	}
	below := 2*lineHeight + 6
	for i, name := range d.facets.labels {
		p := panel{
			labels + float64(i%columns)*(width+gap), top + title + float64(i/columns)*(height+title+below),
			width, height,
		}
		d.panels = append(d.panels, p)
		if n > 1 {
			d.word(p.left, p.top-lineHeight-6, "start", "ink", clip(d.facets.name+" = "+name, width))
		}
		d.frame(p, i%columns == 0)
		d.height = p.top + height + below
	}
	d.width = figureWidth
}

// frame draws the frame and the axes of a panel.
func (d *drawing) frame(p panel, first bool) {
	if first {
		d.word(p.left, p.top-6, "start", "dim", clip("↑ "+d.y.name, p.width))
	}
	rule := func(from, to point) { d.add(shape{kind: lines, class: "rule", points: []point{from, to}, size: 1}) }
	for _, t := range d.y.ticks(max(2, min(8, int(p.height/30)))) {
		rule(p.at(0, t.at), p.at(1, t.at))
		if first {
			d.word(p.left-6, p.at(0, t.at).y+4, "end", "dim", clip(t.label, 150))
		}
	}
	about := max(2, int(p.width/70))
	room := p.width / float64(about)
	if d.x.bands != nil { // a label may take the width of the bands that it stands for
		about = min(about, len(d.x.bands))
		room = p.width / float64(about)
	}
	last := -1.0
	for _, t := range d.x.ticks(about) {
		at := p.at(t.at, 0)
		rule(at, p.at(t.at, 1))
		if half := letter * float64(len([]rune(clip(t.label, room)))) / 2; at.x-half > last {
			d.word(at.x, at.y+lineHeight, "middle", "dim", clip(t.label, room))
			last = at.x + half
		}
	}
	d.word(p.left+p.width, p.top+p.height+2*lineHeight, "end", "dim", clip(d.x.name+" →", p.width))
}

// A key is an entry of the legend.
type key struct{ class, label string }

// legend draws the legend at the top, and returns where it ends.
func (d *drawing) legend(keys []key, name string) float64 {
	if len(keys) < 2 && name == "" {
		return 8
	}
	x, y := 8.0, lineHeight
	d.word(x, y, "start", "ink", clip(name, 260))
	x += letter*float64(len([]rune(clip(name, 260)))) + 14
	for _, k := range keys {
		width := letter*float64(len([]rune(clip(k.label, 180)))) + 28
		if x+width > figureWidth && x > 8 {
			x, y = 8, y+lineHeight+2
		}
		d.add(shape{kind: rectangles, class: k.class, points: []point{{x, y - 10}, {x + 11, y + 1}}})
		d.word(x+16, y, "start", "ink", clip(k.label, 180))
		x += width
	}
	return y + 10
}

// clip shortens a text to a width.
func clip(text string, width float64) string {
	letters := []rune(text)
	if most := max(2, int(width/letter)); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return text
}

// seriesKeys returns the legend of the colours.
func (d *drawing) seriesKeys() (keys []key) {
	if d.Colour == nil {
		return nil
	}
	for i, name := range d.colours.labels {
		keys = append(keys, key{d.colours.class(i), name})
	}
	return keys
}

// scaleKeys returns the legend of a scale.
func scaleKeys(low, high string) (keys []key) {
	for i := range steps {
		keys = append(keys, key{step(i, steps), ""})
	}
	keys[0].label, keys[steps-1].label = low, high
	return keys
}

// describe sets the title and the description of the figure. The texts say what is drawn over what.
func (d *drawing) describe(title, what string) {
	d.Title = title
	parts := []string{what, d.x.describe(), d.y.describe()}
	if d.colours.name != "" {
		parts = append(parts, "Colours: "+d.colours.name+", "+strings.Join(d.colours.labels, ", "))
	}
	if d.facets.name != "" {
		parts = append(parts, "Panels: "+d.facets.name+", "+strings.Join(d.facets.labels, ", "))
	}
	d.Description = strings.Join(parts, ". ") + "."
}

func (a *axis) describe() string {
	switch {
	case a.bands != nil:
		return a.name + ": " + strings.Join(a.bands[:min(len(a.bands), mostBands)], ", ")
	case a.log:
		return a.name + " from " + text(a.value(0)) + " to " + text(a.value(1)) + ", logarithmic"
	}
	return a.name + " from " + text(a.value(0)) + " to " + text(a.value(1))
}
