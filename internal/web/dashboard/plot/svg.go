package plot

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// SVG returns the figure as an SVG element, for a page or as a file. It has neither styles nor scripts; the class plot
// and those of the shapes let a style sheet change the colours.
func (f *Figure) SVG() []byte {
	var b strings.Builder
	title := html.EscapeString(f.Title)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img" aria-label="%s" viewBox="0 0 %.0f %.0f" font-family="system-ui, sans-serif" font-size="12">`,
		title, f.width, f.height)
	fmt.Fprintf(&b, "<title>%s</title><desc>%s</desc>", title, html.EscapeString(f.Description))
	fmt.Fprintf(&b, `<rect class="back" color="%s" fill="currentColor" width="%.0f" height="%.0f"/>`, colours["back"],
		f.width, f.height)
	for i := range f.shapes {
		f.shapes[i].svg(&b)
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

func (s *shape) svg(b *strings.Builder) {
	of := fmt.Sprintf(`class="%s" color="%s"`, s.class, colours[s.class])
	if s.faint > 0 {
		of += ` opacity="` + coordinate(1-s.faint) + `"`
	}
	filled, drawn := ` fill="currentColor"`, fmt.Sprintf(` fill="none" stroke="currentColor" stroke-width="%s"`,
		coordinate(s.size))
	switch s.kind {
	case words:
		fmt.Fprintf(b, `<text %s%s x="%s" y="%s" text-anchor="%s">%s</text>`, of, filled, coordinate(s.points[0].x),
			coordinate(s.points[0].y), s.anchor, html.EscapeString(s.text))
		return
	case rectangles:
		fmt.Fprintf(b, `<path %s%s d="`, of, filled)
		for i := 0; i+1 < len(s.points); i += 2 {
			from, to := s.points[i], s.points[i+1]
			fmt.Fprintf(b, "M%s %sH%sV%sH%sz", coordinate(from.x), coordinate(from.y), coordinate(to.x),
				coordinate(to.y), coordinate(from.x))
		}
	// A line of length 0 is a dot with round ends, or a square with square ends; this is the shortest way to write them.
	case dots, squares:
		ends := "round"
		if s.kind == squares {
			ends = "butt"
		}
		fmt.Fprintf(b, `<path %s%s stroke-linecap="%s" d="`, of, drawn, ends)
		for _, p := range s.points {
			if s.kind == squares {
				fmt.Fprintf(b, "M%s %sh%s", coordinate(p.x-s.size/2), coordinate(p.y), coordinate(s.size))
			} else {
				fmt.Fprintf(b, "M%s %sh0", coordinate(p.x), coordinate(p.y))
			}
		}
	default:
		if s.kind == area {
			drawn = filled
		}
		fmt.Fprintf(b, `<path %s%s d="`, of, drawn)
		for i, p := range s.points {
			b.WriteByte("ML"[min(i, 1)])
			b.WriteString(coordinate(p.x) + " " + coordinate(p.y))
		}
	}
	b.WriteString(`"/>`)
}

// coordinate writes a number with at most one decimal.
func coordinate(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}
