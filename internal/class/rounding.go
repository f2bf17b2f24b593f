package class

import (
	"math"
	"math/bits"
	"slices"

	"github.com/tdf-framework/tdf/internal/unixtime"
)

// Tasks that ask for different amounts of memory, or have different min_times, would each need a requirement of their
// own. So requirements have these values rounded up: to an eighth of a power of two, but by less than one of the spans
// below. The tasks themselves keep their exact values, and take no more from their workers (docs/resources.md,
// "Rounded requests").
const (
	memoryStep = 1 << 30 // bytes
	timeStep   = 240     // seconds
)

// roundUp rounds up to the next of the eight steps from a power of two to the next one. No step is longer than most.
func roundUp(n, most int64) int64 {
	step := min(most, 1<<max(0, bits.Len64(uint64(n))-4))
	return (n + step - 1) / step * step
}

// Rounded returns the requirement with its memory and its min_time rounded up.
func (p Requirement) Rounded() Requirement {
	if p.MinTime > 0 && p.MinTime <= unixtime.Latest {
		p.MinTime = unixtime.Seconds(roundUp(int64(math.Ceil(float64(p.MinTime))), timeStep))
	}
	var once Request
	for _, all := range p.Resources.Rounded() {
		once = once.with(all)
	}
	p.Resources = once
	return p
}

// Rounded returns the request with its memory rounded up. The alternatives keep their numbers, and may become equal.
func (r Request) Rounded() Request {
	rounded := slices.Clone(r)
	for i, all := range r {
		rounded[i] = slices.Clone(all)
		for k, a := range all {
			if a.Name == Memory {
				rounded[i][k].Units = roundUp(a.Units, memoryStep)
			}
		}
	}
	return rounded
}

// with returns the request with a further alternative, unless it has this one.
func (r Request) with(all Amounts) Request {
	if slices.ContainsFunc(r, func(other Amounts) bool { return slices.Equal(other, all) }) {
		return r
	}
	return append(r, all)
}
