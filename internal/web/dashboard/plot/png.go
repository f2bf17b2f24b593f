package plot

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"strconv"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// zoom is the number of pixels of a PNG for each unit of the figure, so that it is sharp in print.
const zoom = 2

// face returns the font of PNGs. It has Latin, Greek and Cyrillic letters; others are boxes.
var face = sync.OnceValues(func() (font.Face, error) {
	of, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, err
	}
	return opentype.NewFace(of, &opentype.FaceOptions{Size: 12 * zoom, DPI: 72})
})

// drawingPNG is held while a PNG is drawn: a font.Face serves one goroutine, and a picture takes some megabytes.
var drawingPNG sync.Mutex

// PNG returns the figure as a PNG with the light colours, drawn from the shapes of the SVG, so that it needs neither a
// browser nor JavaScript.
func (f *Figure) PNG() ([]byte, error) {
	drawingPNG.Lock()
	defer drawingPNG.Unlock()
	letters, err := face()
	if err != nil {
		return nil, err
	}
	p := painter{image.NewRGBA(image.Rect(0, 0, int(f.width*zoom), int(f.height*zoom))), letters}
	draw.Draw(p.RGBA, p.Bounds(), image.NewUniform(colourOf("back", 0)), image.Point{}, draw.Src)
	for i := range f.shapes {
		p.paint(&f.shapes[i])
	}
	var b bytes.Buffer
	err = png.Encode(&b, p.RGBA)
	return b.Bytes(), err
}

type painter struct {
	*image.RGBA
	letters font.Face
}

func (p painter) paint(s *shape) {
	switch s.kind {
	case words:
		p.write(s)
	case dots, squares: // one by one, because dots that cover each other are darker there
		for _, at := range s.points {
			p.fill(s, []point{{at.x - s.size/2, at.y - s.size/2}, {at.x + s.size/2, at.y + s.size/2}})
		}
	default:
		p.fill(s, s.points)
	}
}

func (p painter) write(s *shape) {
	from := fixed.Int26_6(s.points[0].x * zoom * 64)
	switch width := font.MeasureString(p.letters, s.text); s.anchor {
	case "end":
		from -= width
	case "middle":
		from -= width / 2
	}
	d := font.Drawer{
		Dst: p.RGBA, Src: image.NewUniform(colourOf(s.class, 0)), Face: p.letters,
		Dot: fixed.Point26_6{X: from, Y: fixed.Int26_6(s.points[0].y * zoom * 64)},
	}
	d.DrawString(s.text)
}

// fill fills a shape with the given points. The rasterizer has only the size of the shape, because it clears itself for
// each.
func (p painter) fill(s *shape, points []point) {
	from, to := points[0], points[0]
	for _, at := range points {
		from, to = point{min(from.x, at.x), min(from.y, at.y)}, point{max(to.x, at.x), max(to.y, at.y)}
	}
	box := image.Rect(int(from.x-s.size)*zoom, int(from.y-s.size)*zoom, int(to.x+s.size+1)*zoom,
		int(to.y+s.size+1)*zoom).Intersect(p.Bounds())
	if box.Empty() {
		return
	}
	t := tracer{vector.NewRasterizer(box.Dx(), box.Dy()), point{float64(box.Min.X), float64(box.Min.Y)}}
	switch s.kind {
	case dots:
		t.disc(point{(from.x + to.x) / 2, (from.y + to.y) / 2}, s.size/2)
	case area:
		t.polygon(points...)
	case lines:
		for i := range points[1:] {
			t.segment(points[i], points[i+1], s.size/2)
		}
	default:
		for i := 0; i+1 < len(points); i += 2 {
			t.polygon(points[i], point{points[i+1].x, points[i].y}, points[i+1], point{points[i].x, points[i+1].y})
		}
	}
	t.Draw(p.RGBA, box, image.NewUniform(colourOf(s.class, s.faint)), image.Point{})
}

// A tracer draws paths of a figure into a part of the picture.
type tracer struct {
	*vector.Rasterizer
	origin point
}

func (t tracer) polygon(points ...point) {
	for i, p := range points {
		x, y := float32(p.x*zoom-t.origin.x), float32(p.y*zoom-t.origin.y)
		if i == 0 {
			t.MoveTo(x, y)
		} else {
			t.LineTo(x, y)
		}
	}
	t.ClosePath()
}

func (t tracer) segment(from, to point, half float64) {
	length := math.Hypot(to.x-from.x, to.y-from.y)
	if length == 0 {
		return
	}
	x, y := (to.y-from.y)/length*half, (from.x-to.x)/length*half
	t.polygon(point{from.x + x, from.y + y}, point{to.x + x, to.y + y}, point{to.x - x, to.y - y},
		point{from.x - x, from.y - y})
}

func (t tracer) disc(at point, radius float64) {
	var corners [12]point
	for i := range corners {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(len(corners)))
		corners[i] = point{at.x + radius*cos, at.y + radius*sin}
	}
	t.polygon(corners[:]...)
}

// colourOf returns the colour of a class.
func colourOf(class string, faint float64) color.NRGBA {
	rgb, _ := strconv.ParseUint(colours[class][1:], 16, 32)
	return color.NRGBA{uint8(rgb >> 16), uint8(rgb >> 8), uint8(rgb), uint8(255 * (1 - faint))}
}
