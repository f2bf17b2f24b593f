package class

import (
	"math"
	"slices"
)

// A Capacity is how much of a resource a worker has, or has free. Cores and GPUs have indices: a whole core is one core
// and no two halves, and a fraction is a part of one of them. Other resources are one amount, in Parts.
type Capacity struct {
	Name  string
	Unit  int64   // the units of one index; more than any amount if the resource has no indices
	Whole int64   // the number of indices that are wholly free
	Parts []int64 // the free units of the other indices, from the smallest up; no element is 0
}

// noIndices is the unit of a resource without indices. Each amount is a fraction of it. Lua counts exactly up to it.
const noIndices = 1 << 53

// HasIndices reports whether a resource is a number of things that a task gets as a whole, or in part from one of them.
func HasIndices(name string) bool { return name == CPUs || name == GPUs }

// CapacityOf returns the capacity of a worker that has this amount, with a fraction of one index at most.
func CapacityOf(a Amount) Capacity {
	c := Capacity{Name: a.Name, Unit: noIndices}
	if HasIndices(a.Name) {
		c.Unit = Scale
	}
	c.Whole = a.Units / c.Unit
	rest := a.Units % c.Unit
	if rest > 0 {
		c.Parts = []int64{rest}
	}
	return c
}

// Units returns the sum of the free units.
func (c *Capacity) Units() int64 {
	sum := c.Whole * c.Unit
	for _, n := range c.Parts {
		sum += n
	}
	return sum
}

// take takes an amount. It returns false, and takes nothing, if it does not fit. A fraction comes from the smallest
// part in which it fits.
func (c *Capacity) take(units int64) bool {
	whole, rest := units/c.Unit, units%c.Unit
	part := slices.IndexFunc(c.Parts, func(n int64) bool { return n >= rest })
	if rest > 0 && part < 0 {
		whole++
	}
	if whole > c.Whole {
		return false
	}
	c.Whole -= whole
	switch {
	case rest == 0:
		return true
	case part < 0:
		c.Parts = append(slices.Clone(c.Parts), c.Unit-rest)
	default:
		c.Parts = slices.Clone(c.Parts)
		c.Parts[part] -= rest
	}
	slices.Sort(c.Parts)
	c.Parts = slices.DeleteFunc(c.Parts, func(n int64) bool { return n == 0 })
	return true
}

// Capacities are what a worker offers, or has free. Nil means that the worker offers no resources.
type Capacities []Capacity

// CapacitiesOf returns the capacities of a worker that has these amounts, with a fraction of one index at most.
func CapacitiesOf(all Amounts) (c Capacities) {
	for _, a := range all {
		c = append(c, CapacityOf(a))
	}
	return c
}

// Amounts returns the sums of the free units.
func (c Capacities) Amounts() (all Amounts) {
	for i := range c {
		all = append(all, Amount{c[i].Name, c[i].Units()})
	}
	return all
}

// Without returns what is left after a task takes the first alternative that fits, and the number of this alternative.
// It returns -1 if none fits.
func (c Capacities) Without(r Request) (left Capacities, alternative int) {
	for i, all := range r {
		left = c.without(all)
		if left != nil {
			return left, i
		}
	}
	return nil, -1
}

func (c Capacities) without(all Amounts) Capacities {
	left := append(Capacities{}, c...)
	for _, a := range all {
		if a.Units == 0 {
			continue
		}
		i := slices.IndexFunc(left, func(of Capacity) bool { return of.Name == a.Name })
		if i < 0 || !left[i].take(a.Units) {
			return nil
		}
	}
	return left
}

// Lacking returns what the capacities lack for the alternative that comes closest: the one that lacks the fewest
// resources. It returns nil if an alternative fits.
func (c Capacities) Lacking(r Request) (least Amounts) {
	for _, all := range r {
		var lacks Amounts
		free := c.Amounts()
		for _, a := range all {
			if c.without(Amounts{a}) == nil {
				lacks = append(lacks, Amount{a.Name, a.Units - free.Of(a.Name)})
			}
		}
		if len(lacks) == 0 {
			return nil
		}
		if least == nil || len(lacks) < len(least) {
			least = lacks
		}
	}
	return least
}

// PlainRequest is what a task that asks for nothing takes from a worker that offers resources.
var PlainRequest = Request{{{CPUs, Scale}, {Slots, Scale}}}

// Fit reports whether a task with this request fits. A nil request is that of a task that asks for nothing.
func (c Capacities) Fit(r Request) bool {
	if r == nil {
		r = PlainRequest
	}
	_, alternative := c.Without(r)
	return alternative >= 0
}

// PlainRoom returns how many tasks that ask for nothing fit.
func (c Capacities) PlainRoom() int {
	room := int64(math.MaxInt32)
	for _, a := range PlainRequest[0] {
		i := slices.IndexFunc(c, func(of Capacity) bool { return of.Name == a.Name })
		switch {
		case i < 0:
			return 0
		case HasIndices(a.Name):
			room = min(room, c[i].Whole)
		default:
			room = min(room, c[i].Units()/a.Units)
		}
	}
	return int(room)
}
