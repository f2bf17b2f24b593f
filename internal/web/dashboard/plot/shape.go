package plot

// A shape is a part of a figure. Its class names its colour.
type shape struct {
	kind   kind
	class  string
	points []point // of rectangles, pairs of corners
	size   float64 // of dots and squares, or the width of a line
	faint  float64 // transparency: 0 for none, 1 for invisible
	text   string
	anchor string // where a text stands, seen from its point: "start", "middle" or "end" lies on the point
}

type point struct{ x, y float64 }

type kind int

const (
	rectangles kind = iota
	dots
	squares
	lines // one line through all points
	area  // the polygon through all points
	words
)

// colours of the classes on a light background, in which files and PNGs are drawn. The style sheet of the dashboard has
// those for dark pages.
//
// The colours of series can be told apart by people with any kind of colour vision (Okabe and Ito). Those of scales go
// from light to dark.
var colours = map[string]string{
	"ink": "#1b1f24", "dim": "#59626e", "rule": "#d5d9df", "back": "#ffffff",
	"s0": "#0072b2", "s1": "#d55e00", "s2": "#009e73", "s3": "#b6579a", "s4": "#a87f00", "s5": "#3f9ad0",
	"s6": "#000000", "s7": "#7a7a7a",
	"q0": "#cfe1f2", "q1": "#b0d2e7", "q2": "#89bedc", "q3": "#60a6d1", "q4": "#3e8ec4", "q5": "#2171b5",
	"q6": "#0a549e", "q7": "#08306b",
}

// steps is the number of colours in a scale.
const steps = 8

func step(i, of int) string {
	if of > 1 {
		i = i * (steps - 1) / (of - 1)
	}
	return "q" + string(rune('0'+max(0, min(steps-1, i))))
}

// class returns the class of a group of rows.
func (g *groups) class(i int) string {
	if g.scale && len(g.labels) > 1 {
		return step(i+1, len(g.labels)+1) // the lightest colour is too light for lines
	}
	return "s" + string(rune('0'+i%mostSeries))
}

func (f *Figure) add(s shape) {
	if len(s.points) > 0 {
		f.shapes = append(f.shapes, s)
	}
}

func (f *Figure) word(x, y float64, anchor, class, text string) {
	f.add(shape{kind: words, class: class, points: []point{{x, y}}, anchor: anchor, text: text})
}
