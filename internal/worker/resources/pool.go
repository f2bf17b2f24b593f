package resources

import (
	"cmp"
	"slices"
	"sync"

	"github.com/tdf-framework/tdf/internal/class"
)

// A Pool has what is free. Several goroutines may use it.
//
// Two claims must not offer the same at the same time. So a claim gets a Loan of all that is free, and no other claim
// gets one until it has ended.
type Pool struct {
	mu       sync.Mutex
	all      []resource
	whole    class.Amounts // the sum of all resources
	variable string        // see Machine; "" if the worker offers no GPUs
	loan     *Loan         // of the claim that is under way, or nil
}

// A Loan is what was free when a claim began. What has become free since is not in it, and its tasks take the rounded
// amounts of their requirements from it. So they get exactly what Redis has computed for them.
type Loan struct{ left []resource }

type resource struct {
	name    string
	unit    int64 // of one index; see class.Capacity
	indices []index
}

// An index is a core, a GPU, or the whole of a resource without indices.
type index struct {
	label string
	node  int // the NUMA node of a core
	free  int64
}

// A part is what a share has of one index.
type part struct {
	label string // the number of a core, or the name of a GPU for CUDA or ROCm; "" for a resource without indices
	units int64
}

// A Share is what a round has got. The zero Share is nothing.
type Share struct {
	Amounts  class.Amounts
	parts    map[string][]part
	variable string // see Pool
}

// Take takes the first alternative of a request that fits in a loan. After the end of the loan, and without one, it
// takes from what is free now. It returns false if no alternative fits.
func (p *Pool) Take(r class.Request, of *Loan) (Share, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	from, asked := p.all, r
	if of != nil && p.loan == of {
		from, asked = of.left, r.Rounded()
	}
	_, alternative := capacities(from).Without(asked)
	if alternative < 0 {
		return Share{}, false
	}
	s := Share{Amounts: r[alternative], parts: map[string][]part{}, variable: p.variable}
	for _, a := range asked[alternative] {
		if a.Units > 0 {
			s.parts[a.Name] = named(from, a.Name).take(a.Units)
		}
	}
	for i := range s.parts[class.Memory] {
		s.parts[class.Memory][i].units = s.Amounts.Of(class.Memory)
	}
	if p.loan == of && of != nil {
		s.add(p.all, -1)
	}
	return s, true
}

// add adds the parts of a share to what is free, or subtracts them if the sign is -1.
func (s *Share) add(all []resource, sign int64) {
	for name, parts := range s.parts {
		of := named(all, name)
		for _, x := range parts {
			of.indices[of.find(x.label)].free += sign * x.units
		}
	}
}

// Put gives a share back.
func (p *Pool) Put(s Share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.add(p.all, 1)
}

// Lend returns a loan for a claim. It returns nil if the loan of another claim has not ended.
func (p *Pool) Lend() *Loan {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loan != nil {
		return nil
	}
	p.loan = &Loan{slices.Clone(p.all)}
	for i := range p.all {
		p.loan.left[i].indices = slices.Clone(p.all[i].indices)
	}
	return p.loan
}

// End ends a loan. It reports whether the loan had not ended earlier.
func (p *Pool) End(l *Loan) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l == nil || p.loan != l {
		return false
	}
	p.loan = nil
	return true
}

// Free returns what is free. Loans change nothing.
func (p *Pool) Free() class.Capacities {
	p.mu.Lock()
	defer p.mu.Unlock()
	return capacities(p.all)
}

// Used returns how much of each resource is taken, without those of which nothing is.
func (p *Pool) Used() (used class.Amounts) {
	free := p.Free().Amounts()
	for _, a := range p.whole {
		n := a.Units - free.Of(a.Name)
		if n > 0 {
			used = append(used, class.Amount{Name: a.Name, Units: n})
		}
	}
	return used
}

// Free returns what is left of the loan. No claim may take from it at the same time.
func (l *Loan) Free() class.Capacities { return capacities(l.left) }

func capacities(all []resource) class.Capacities {
	c := make(class.Capacities, len(all))
	for i := range all {
		c[i] = all[i].capacity()
	}
	return c
}

// named returns a resource that a list has.
func named(all []resource, name string) *resource {
	return &all[slices.IndexFunc(all, func(r resource) bool { return r.name == name })]
}

func (r *resource) find(label string) int {
	return slices.IndexFunc(r.indices, func(x index) bool { return x.label == label })
}

func (r *resource) capacity() class.Capacity {
	c := class.Capacity{Name: r.name, Unit: r.unit}
	for _, x := range r.indices {
		switch {
		case x.free == r.unit:
			c.Whole++
		case x.free > 0:
			c.Parts = append(c.Parts, x.free)
		}
	}
	slices.Sort(c.Parts)
	return c
}

// take takes an amount that fits, by the rule of class.Capacities: whole indices, and the fraction from the smallest
// part in which it fits, or else from a whole index.
func (r *resource) take(units int64) (parts []part) {
	n, rest := int(units/r.unit), units%r.unit
	from := r.smallest(rest)
	if rest > 0 && from < 0 {
		n++
	}
	whole := r.whole(n)
	if rest > 0 && from < 0 {
		from, whole = whole[n-1], whole[:n-1]
	}
	for _, i := range whole {
		parts = append(parts, r.takeFrom(i, r.unit))
	}
	if rest == 0 {
		return parts
	}
	return append(parts, r.takeFrom(from, rest))
}

// smallest returns the index with the smallest part in which a fraction fits, or -1.
func (r *resource) smallest(rest int64) int {
	found := -1
	for i, x := range r.indices {
		if x.free >= rest && x.free < r.unit && (found < 0 || x.free < r.indices[found].free) {
			found = i
		}
	}
	return found
}

func (r *resource) takeFrom(i int, units int64) part {
	r.indices[i].free -= units
	return part{r.indices[i].label, units}
}

// whole returns n indices that are wholly free: all of one NUMA node, if a node has so many, and otherwise of as few
// nodes as possible.
func (r *resource) whole(n int) (chosen []int) {
	nodes := map[int][]int{}
	for i, x := range r.indices {
		if x.free == r.unit {
			nodes[x.node] = append(nodes[x.node], i)
		}
	}
	for n > len(chosen) {
		next := nextNode(nodes, n-len(chosen))
		chosen = append(chosen, nodes[next][:min(n-len(chosen), len(nodes[next]))]...)
		delete(nodes, next)
	}
	return chosen
}

// nextNode returns the node from which to take n indices: the fullest one that has so many, and otherwise the one that
// has most.
func nextNode(nodes map[int][]int, n int) int {
	return slices.MinFunc(sortedKeys(nodes), func(a, b int) int {
		x, y := len(nodes[a]), len(nodes[b])
		switch {
		case x >= n && y >= n:
			return cmp.Compare(x, y)
		}
		return cmp.Compare(y, x)
	})
}
