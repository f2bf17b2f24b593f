// Package bars formats the lines that say whether a measurement has reached its target (docs/development.md,
// "Measuring").
package bars

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Bar is a target for one measurement. It has one or more parts, and is met if all of them are.
type Bar struct {
	Name  string
	Parts []Part
}

// A Part is a condition for one measured number, the figure: it must be at least or at most Limit.
type Part struct {
	Unit    string // follows the figure in the line, such as "× asynq with 16 callers"
	AtMost  bool   // true: the figure must be at most Limit; false: it must be at least Limit
	Limit   float64
	Samples []float64 // one figure for each round; empty if the figure was not measured
}

// A Verdict says whether a bar is met.
type Verdict string

// The verdicts.
const (
	Met         Verdict = "met"
	Short       Verdict = "short"
	NotMeasured Verdict = "not measured"
)

// Line returns the bar's line, such as
//
//	bar open-bulk 1.82 (1.61-2.01) × asynq with 16 callers want >= 2.0: met
//
// It contains the median of each figure, and its smallest and largest value.
func (b Bar) Line() string {
	figures, conditions := make([]string, len(b.Parts)), make([]string, len(b.Parts))
	for i, p := range b.Parts {
		figures[i], conditions[i] = p.figure(), p.condition()
	}
	return fmt.Sprintf("bar %s %s want %s: %s", b.Name, strings.Join(figures, ", "), strings.Join(conditions, " and "),
		b.Verdict())
}

// Verdict returns whether the bar is met.
func (b Bar) Verdict() Verdict {
	var verdicts []Verdict
	for _, p := range b.Parts {
		verdicts = append(verdicts, p.verdict())
	}
	switch {
	case len(verdicts) == 0 || slices.Contains(verdicts, NotMeasured):
		return NotMeasured
	case slices.Contains(verdicts, Short):
		return Short
	}
	return Met
}

// tolerance is the share of the limit by which the median of a part may miss the limit. This applies only if the best
// sample reaches the limit.
const tolerance = 0.05

func (p Part) verdict() Verdict {
	if len(p.Samples) == 0 {
		return NotMeasured
	}
	median := Median(p.Samples)
	reaches := func(x float64) bool { return x == p.Limit || (x < p.Limit) == p.AtMost }
	best := slices.Max(p.Samples)
	near := median >= p.Limit*(1-tolerance)
	if p.AtMost {
		best, near = slices.Min(p.Samples), median <= p.Limit*(1+tolerance)
	}
	if reaches(median) || near && reaches(best) {
		return Met
	}
	return Short
}

func (p Part) figure() string {
	if len(p.Samples) == 0 {
		return "- " + p.Unit
	}
	return fmt.Sprintf("%s (%s-%s) %s", Format(Median(p.Samples)), Format(slices.Min(p.Samples)),
		Format(slices.Max(p.Samples)), p.Unit)
}

func (p Part) condition() string {
	sign := ">="
	if p.AtMost {
		sign = "<="
	}
	limit := strconv.FormatFloat(p.Limit, 'f', -1, 64)
	if !strings.Contains(limit, ".") && p.Limit < 10 {
		limit += ".0"
	}
	return sign + " " + limit
}

// Median returns the middle value, or the mean of the two middle values.
func Median(samples []float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Format formats a figure with about three digits.
func Format(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}
