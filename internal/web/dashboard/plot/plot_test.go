package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func numbers(name string, values ...float64) *Column { return &Column{Name: name, Numbers: values} }

func texts(name string, values ...string) *Column {
	c := &Column{Name: name}
	known := map[string]int32{}
	for _, v := range values {
		if _, ok := known[v]; !ok {
			known[v] = int32(len(c.Texts))
			c.Texts = append(c.Texts, v)
		}
		c.Codes = append(c.Codes, known[v])
	}
	return c
}

// made returns a column of n values.
func made(name string, n int, value func(i int) float64) *Column {
	c := &Column{Name: name, Numbers: make([]float64, n)}
	for i := range c.Numbers {
		c.Numbers[i] = value(i)
	}
	return c
}

// attributes are all attributes that an SVG may have. A page refuses styles in attributes.
var attributes = strings.Fields("xmlns class role aria-label viewBox font-family font-size color fill width height x y text-anchor d stroke stroke-width stroke-linecap opacity")

// check draws a figure as SVG, and as PNG unless picture is false, and checks what holds for all figures.
func check(t *testing.T, name string, s Spec, picture ...bool) *Figure {
	t.Helper()
	f := expect.Result(Draw(s)).Value(t, name)
	svg := f.SVG()
	expect.True(t, len(svg) <= 300_000, name, "the SVG has", len(svg), "bytes")
	for _, bad := range []string{"<script", "<style", "\u202e", "\x1b", "\x00"} {
		expect.True(t, !strings.Contains(string(svg), bad), name, "the SVG contains", bad, string(svg))
	}
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		expect.NoError(t, err, name, "in", string(svg))
		if element, ok := token.(xml.StartElement); ok {
			for _, a := range element.Attr {
				expect.MustTrue(t, slices.Contains(attributes, a.Name.Local), name, "attribute", a.Name.Local, a.Value)
				if a.Name.Local != "aria-label" {
					expect.NotContains(t, a.Value, "NaN", name)
					expect.NotContains(t, a.Value, "Inf", name)
				}
			}
		}
	}
	for _, need := range []string{`role="img"`, "<title>", "<desc>", "viewBox"} {
		expect.Contains(t, string(svg), need, name)
	}
	for _, s := range f.shapes {
		expect.True(t, colours[s.class] != "", name, "class", s.class, "has no colour")
		for _, p := range s.points {
			expect.MustTrue(t, p.x >= -1, name, p, "lies outside of the figure of", f.width, "x", f.height)
			expect.MustTrue(t, p.x <= f.width+1, name, p, "lies outside of the figure of", f.width, "x", f.height)
			expect.MustTrue(t, p.y >= -1, name, p, "lies outside of the figure of", f.width, "x", f.height)
			expect.MustTrue(t, p.y <= f.height+1, name, p, "lies outside of the figure of", f.width, "x", f.height)
		}
	}
	expect.Compare(t, len(f.Numbers), "<=", mostNumbers, name)
	expect.Compare(t, f.height, "<=", 3000, name)
	expect.Compare(t, len(f.Description), "<=", 10_000, name)
	for _, row := range f.Numbers {
		expect.Equal(t, len(row), len(f.Head), name, "cells")
	}
	if len(picture) > 0 && !picture[0] {
		return f
	}
	made, err := f.PNG()
	expect.NoError(t, err)
	_, err = png.Decode(bytes.NewReader(made))
	expect.NoError(t, err, name)
	expect.Compare(t, len(made), "<=", 2_000_000, name)
	return f
}

func TestHostileNumbers(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, values := range [][]float64{
		{},
		{nan},
		{nan, inf, -inf},
		{0},
		{0, 0, 0},
		{1e308, -1e308},
		{1e300, -1e300},
		{math.MaxFloat64, 1},
		{5e-324},
		{0, 5e-324},
		{1e-300, 1e300},
		{-1, 0, 1e300},
		{1e15, 1e15 + 0.125},
		{1e300, math.Nextafter(1e300, 0)},
		{-5, -5, inf},
		{1, 10, 100, 1000, 1e6},
		{0.1, 0.2, 0.30000000000000004},
		{math.Copysign(0, -1), 0},
		{1e-320, 1},
	} {
		for _, kind := range Kinds {
			for _, scale := range append([]Scale{""}, Scales...) {
				column := numbers("v", values...)
				for _, s := range []Spec{
					{X: column, Y: column},
					{X: column, Y: column, Colour: column, Facet: column},
					{X: made("i", len(values), func(i int) float64 { return float64(i) }), Y: column, Facet: column},
				} {
					s.Kind, s.XScale, s.YScale = kind, scale, scale
					check(t, fmt.Sprintf("%s %s %v", kind, scale, values), s, scale == Log && kind != Line && s.Colour != nil)
				}
			}
		}
	}
}

func TestHostileTexts(t *testing.T) {
	evil := []string{
		"<script>alert(1)</script>", `" onclick="alert(1)`, "\u202eRTL\u2066", "\x1b[31m\x00", "", " ", strings.Repeat("M", 1<<20), strings.Repeat("\u202e", 1<<20), "\xff\xfe", "]]>", "&lt;", "𝔘𝔫𝔦", "\n\n", "-", "NaN ",
	}
	column := texts(evil[0], evil...)
	y := made(evil[6], len(evil), func(i int) float64 { return float64(i) })
	for _, kind := range Kinds {
		s := Spec{Kind: kind, X: column, Y: y, Colour: column, Facet: column}
		if kind == Heat {
			s.Y, s.Colour = column, y
		}
		check(t, string(kind), s)
	}
	check(t, "texts", Spec{X: texts(evil[7], evil...), Y: column})
	for _, s := range []Spec{{Kind: Line, X: y, Y: column}, {Kind: Heat, X: y, Y: y, Colour: column}} {
		_, err := Draw(s)
		expect.Fails(t, err, "must be numbers")
	}
}

// Any number of rows makes a small figure, also with many values of everything.
func TestManyRows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	n := 100_000
	x, y := made("x", n, func(int) float64 { return random.NormFloat64() }), made("y", n, func(int) float64 { return math.Exp(9 * random.NormFloat64()) })
	many := &Column{Name: "many", Codes: make([]int32, n)}
	for i := range 10_000 {
		many.Texts = append(many.Texts, fmt.Sprint("text ", i))
	}
	for i := range many.Codes {
		many.Codes[i] = int32(random.IntN(10_000))
	}
	million := made("z", 1_000_000, func(int) float64 { return random.NormFloat64() })
	f := check(t, "scatter", Spec{X: million, Y: million})
	expect.Contains(t, strings.Join(f.Notes, " "), "1000000 rows, drawn as density")
	check(t, "line of a million", Spec{Kind: Line, X: million, Y: million})
	check(t, "scatter of texts", Spec{X: x, Y: many, Colour: y, Facet: many})
	check(t, "line", Spec{Kind: Line, X: x, Y: y, Colour: many, Facet: x})
	check(t, "line over texts", Spec{Kind: Line, X: many, Y: y, Colour: x, Facet: many})
	check(t, "heat", Spec{Kind: Heat, X: x, Y: x, Colour: y, Facet: many})
	check(t, "heat of rows", Spec{Kind: Heat, X: many, Y: x})
}

// The median and the band of a line are the quantiles of each x, in each group, and dots are where their numbers are.
func TestQuantiles(t *testing.T) {
	x, y, group := &Column{Name: "lr"}, &Column{Name: "loss"}, []string{}
	for _, v := range []float64{0.001, 0.1, 10} {
		for i := range 11 {
			for _, g := range []string{"sgd", "adam"} {
				x.Numbers, group = append(x.Numbers, v), append(group, g)
				y.Numbers = append(y.Numbers, float64(i)*v+float64(len(g)))
			}
		}
	}
	f := check(t, "line", Spec{Kind: Line, X: x, Y: y, Colour: texts("opt", group...)})
	expect.Equal(t, f.Head, []string{"opt", "lr", "rows", "median of loss", "10 %", "90 %"})
	expect.Equal(t, f.Numbers[0], []string{"adam", "0.001", "11", "4.005", "4.001", "4.009"})
	expect.Equal(t, f.Numbers[5], []string{"sgd", "10", "11", "53", "13", "93"})
	expect.Contains(t, f.Description, "lr from 0.0007586 to 13.18", "the axis is logarithmic, because the numbers span four decades")
	expect.Contains(t, f.Description, "logarithmic")

	f = check(t, "heat", Spec{Kind: Heat, X: x, Y: texts("opt", group...), Colour: y})
	expect.Equal(t, f.Numbers[0], []string{"0.001", "adam", "11", "4.005", "4.001", "4.009"})
	expect.Equal(t, f.Title, "Median of loss over lr and opt")

	f = check(t, "scatter", Spec{X: numbers("a", 0, 1, 2, math.NaN()), Y: numbers("b", 5, 6, 7, 8), XScale: Linear})
	expect.Equal(t, f.Notes, []string{"1 row not shown, because a value is missing, or has no place on its axis"})
	var at []point
	for _, s := range f.shapes {
		if s.kind == dots {
			at = append(at, s.points...)
		}
	}
	expect.Len(t, at, 3)
	expect.MustTrue(t, math.Abs(at[1].x-(at[0].x+at[2].x)/2) < 1e-9, at)
	expect.MustTrue(t, at[0].y > at[1].y, at)
	expect.Compare(t, at[1].y, ">", at[2].y)

	f = check(t, "logarithm of zero", Spec{X: numbers("a", 0, 1, 10), Y: numbers("b", 1, 2, 3), XScale: Log})
	expect.Equal(t, f.Notes, []string{"1 row not shown, because a value is missing, or has no place on its axis"})
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		values []float64
		scale  Scale
		want   string
	}{
		{[]float64{0, 1}, Auto, "0 0.2 0.4 0.6 0.8 1"},
		{[]float64{-3, 7}, Auto, "-2 0 2 4 6"},
		{[]float64{0, 1e6}, Linear, "0 200000 400000 600000 800000 1000000"},
		{[]float64{0, 5e9}, Linear, "0 1e9 2e9 3e9 4e9 5e9"},
		{[]float64{0.0001, 0.00011}, Auto, "0.0001 0.000102 0.000104 0.000106 0.000108 0.00011"},
		{[]float64{1, 1000}, Auto, "1 2 5 10 20 50 100 200 500 1000"},
		{[]float64{1e-8, 1}, Auto, "1e-8 1e-6 0.0001 0.01 1"},
		{[]float64{1, 8}, Log, "2 4 6 8"},
		{[]float64{1e15, 1e15 + 1}, Auto, "9.6e14 9.8e14 1e15 1.02e15 1.04e15"},
		{[]float64{7}, Auto, "6.8 7 7.2"},
	} {
		var labels []string
		for _, tick := range numberAxis("v", c.values, c.scale).ticks(6) {
			labels = append(labels, tick.label)
		}
		expect.Equal(t, strings.Join(labels, " "), c.want, c.values)
	}
	a := bandAxis(texts("t", "10", "9", "b", "a"), "t", 30)
	expect.Equal(t, fmt.Sprint(a.bands), "[9 10 a b]")
	expect.Len(t, a.ticks(2), 2)
	a = bandAxis(texts("t", "a", "b", "b", "c", "c", "d"), "t", 3)
	expect.Equal(t, fmt.Sprint(a.bands), "[b c 2 others]")
}

// Numbers with many values are divided into ranges, in the order of a scale of colours.
func TestRanges(t *testing.T) {
	g := split(made("v", 100, func(i int) float64 { return float64(i) }), 8)
	expect.Equal(t, g.labels[0], "0 to 16.5")
	expect.Len(t, g.labels, 6)
	expect.Equal(t, []int{g.at(0), g.at(50), g.at(99)}, []int{0, 3, 5})
	expect.True(t, g.class(0) < g.class(5), "colours")
}
