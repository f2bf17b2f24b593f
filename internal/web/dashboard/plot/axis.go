package plot

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// An axis places the values of a column between 0 and 1.
type axis struct {
	name   string
	log    bool
	lo, hi float64  // logarithms if log is set
	bands  []string // of an axis of texts, which has a band for each
	column *Column
	codes  []int32
}

// axisOf returns the axis of a column.
func axisOf(c *Column, s Scale, most int) *axis {
	if c.Codes == nil {
		a := numberAxis(c.Name, c.Numbers, s)
		a.column = c
		return a
	}
	return bandAxis(c, c.Name, most)
}

func bandAxis(c *Column, name string, most int) *axis {
	codes, texts := fewest(c, most)
	return &axis{name: label(name), bands: texts, codes: codes}
}

// numberAxis returns an axis on which all the given numbers have a place; on a logarithmic axis, all positive ones.
func numberAxis(name string, numbers []float64, s Scale) *axis {
	lo, hi, positive := math.Inf(1), math.Inf(-1), math.Inf(1)
	for _, v := range numbers {
		if v = number(v); math.IsNaN(v) {
			continue
		}
		lo, hi = min(lo, v), max(hi, v)
		if v > 0 {
			positive = min(positive, v)
		}
	}
	a := &axis{name: label(name)}
	if hi < lo {
		lo, hi, positive = 0, 1, 0.1
	}
	a.log = hi > 0 && (s == Log || s != Linear && lo > 0 && hi/lo >= 1000)
	if a.log {
		lo, hi = math.Log10(positive), math.Log10(hi)
	}
	if least := max(1e-290, 1e-12*max(math.Abs(lo), math.Abs(hi))); hi-lo < least {
		wide := max(least, 0.05*max(math.Abs(lo), math.Abs(hi)))
		if a.log {
			wide = 0.5
		}
		lo, hi = lo-wide, hi+wide
	}
	a.lo, a.hi = lo, hi
	return a
}

// at returns the place of a row's value, or NaN.
func (a *axis) at(row int) float64 {
	if a.column != nil {
		return a.place(a.column.Numbers[row])
	}
	if code := a.codes[row]; code >= 0 {
		return a.middle(int(code))
	}
	return math.NaN()
}

// middle returns the place of a band.
func (a *axis) middle(band int) float64 { return (float64(band) + 0.5) / float64(len(a.bands)) }

// place returns the place of a number, or NaN.
func (a *axis) place(v float64) float64 {
	v = number(v)
	if a.log {
		if v <= 0 {
			return math.NaN()
		}
		v = math.Log10(v)
	}
	return min(1, max(0, (v-a.lo)/(a.hi-a.lo))) // NaN stays NaN
}

// value returns the number at a place.
func (a *axis) value(place float64) float64 {
	v := a.lo + place*(a.hi-a.lo)
	if a.log {
		return math.Pow(10, v)
	}
	return v
}

// widen makes room on both sides, so that no dot lies on the frame.
func (a *axis) widen() {
	if a.bands == nil {
		room := 0.03 * (a.hi - a.lo)
		a.lo, a.hi = a.lo-room, a.hi+room
	}
}

// rest is how far a tick may lie beyond its axis, because floating-point numbers are not exact.
const rest = 1e-9

// A tick is a mark of an axis.
type tick struct {
	at    float64
	label string
}

// ticks returns about the given number of ticks: all bands if they fit, round numbers, or powers of ten.
func (a *axis) ticks(about int) []tick {
	switch {
	case a.bands != nil:
		return a.bandTicks(about)
	case a.log && a.hi-a.lo >= 1.5:
		return a.logTicks(about)
	}
	lo, hi := a.value(0), a.value(1)
	step := roundStep((hi - lo) / float64(about))
	var all []tick
	for i := math.Ceil(lo/step - rest); i <= hi/step+rest && len(all) < 2*about+2; i++ {
		v := i * step
		if at := a.place(v); !math.IsNaN(at) {
			all = append(all, tick{at, rounded(v, step)})
		}
	}
	return slices.CompactFunc(all, func(s, t tick) bool { return s.label == t.label })
}

func (a *axis) bandTicks(about int) []tick {
	every := (len(a.bands) + about - 1) / about
	var all []tick
	for i := 0; i < len(a.bands); i += every {
		all = append(all, tick{a.middle(i), a.bands[i]})
	}
	return all
}

func (a *axis) logTicks(about int) []tick {
	every := max(1, math.Ceil((a.hi-a.lo)/float64(about)))
	var all []tick
	for e := math.Ceil(a.lo/every-rest) * every; e <= a.hi+rest && len(all) < 4*about; e += every {
		all = append(all, tick{(e - a.lo) / (a.hi - a.lo), text(math.Pow(10, e))})
		if a.hi-a.lo <= 3 {
			for _, between := range []float64{2, 5} {
				if v := math.Log10(between) + e; v <= a.hi+rest {
					all = append(all, tick{(v - a.lo) / (a.hi - a.lo), text(between * math.Pow(10, e))})
				}
			}
		}
	}
	return all
}

// roundStep returns 1, 2 or 5 times a power of ten, at least as large as v.
func roundStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 5} {
		if n*power >= v {
			return n * power
		}
	}
	return 10 * power
}

// rounded writes a multiple of a step without the digits that are below the step.
func rounded(v, step float64) string {
	if math.Abs(v) < step/2 {
		return "0"
	}
	if digits := 1 + int(math.Floor(math.Log10(math.Abs(v)))-math.Floor(math.Log10(step)*(1-1e-12))); digits < 17 {
		return trimmed(v, max(1, digits))
	}
	return text(v)
}

// text writes a number with up to four digits, or with all its digits if it has few.
func text(v float64) string {
	if exact := strconv.FormatFloat(v, 'g', -1, 64); len(exact) <= 6 && !strings.Contains(exact, "e") {
		return exact
	}
	return trimmed(v, 4)
}

// trimmed writes a number with the given number of digits, but without zeros at the end of a fraction.
func trimmed(v float64, digits int) string {
	s := strconv.FormatFloat(v, 'e', digits-1, 64)
	exponent, _ := strconv.Atoi(s[strings.IndexByte(s, 'e')+1:])
	if exponent >= -4 && exponent < 7 {
		return withoutZeros(strconv.FormatFloat(v, 'f', max(0, digits-1-exponent), 64))
	}
	mantissa, _, _ := strings.Cut(s, "e")
	return withoutZeros(mantissa) + "e" + strconv.Itoa(exponent)
}

func withoutZeros(number string) string {
	if !strings.Contains(number, ".") {
		return number
	}
	return strings.TrimRight(strings.TrimRight(number, "0"), ".")
}

// natural compares two texts for people: numbers by their values, before all other texts.
func natural(texts []string, i, j int) int {
	a, errA := strconv.ParseFloat(texts[i], 64)
	b, errB := strconv.ParseFloat(texts[j], 64)
	switch {
	case errA == nil && errB == nil && a != b:
		return cmp.Compare(a, b)
	case errA == nil && errB != nil:
		return -1
	case errA != nil && errB == nil:
		return 1
	}
	return strings.Compare(texts[i], texts[j])
}
