package resources

import (
	"cmp"
	"slices"
	"sync"

	"github.com/tdf-framework/tdf"
)

// A Pool has what is free. Several goroutines may use it.
//
// A claim must not offer what another claim offers at the same time. So it borrows everything that is free with Lend,
// takes shares from what it has borrowed, and gives back the rest.
type Pool struct {
	mu       sync.Mutex
	all      []resource
	variable string // see Machine; "" if the worker offers no GPUs
}

type resource struct {
	name    string
	unit    int64 // of one index; see tdf.Capacity
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
	Amounts  tdf.Amounts
	parts    map[string][]part
	variable string // see Pool
}

// Take takes the first alternative of a request that fits. It returns false if none fits.
func (p *Pool) Take(r tdf.ResourceRequest) (Share, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, alternative := p.free().Without(r)
	if alternative < 0 {
		return Share{}, false
	}
	s := Share{Amounts: r[alternative], parts: map[string][]part{}, variable: p.variable}
	for _, a := range s.Amounts {
		if a.Units > 0 {
			s.parts[a.Name] = p.named(a.Name).take(a.Units)
		}
	}
	return s, true
}

// Put gives a share back.
func (p *Pool) Put(s Share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, parts := range s.parts {
		of := p.named(name)
		for _, x := range parts {
			of.indices[of.find(x.label)].free += x.units
		}
	}
}

// Lend returns a Pool with everything that is free, and leaves nothing.
func (p *Pool) Lend() *Pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	lent := &Pool{all: slices.Clone(p.all), variable: p.variable}
	for i := range p.all {
		lent.all[i].indices = slices.Clone(p.all[i].indices)
		for k := range p.all[i].indices {
			p.all[i].indices[k].free = 0
		}
	}
	return lent
}

// Return takes back what is free in a Pool of Lend. Later, there is nothing in that Pool.
func (p *Pool) Return(lent *Pool) {
	back := lent.Lend()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range back.all {
		for k := range back.all[i].indices {
			p.all[i].indices[k].free += back.all[i].indices[k].free
		}
	}
}

// Free returns what is free.
func (p *Pool) Free() tdf.Capacities {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.free()
}

func (p *Pool) free() tdf.Capacities {
	all := make(tdf.Capacities, len(p.all))
	for i := range p.all {
		all[i] = p.all[i].capacity()
	}
	return all
}

// named returns a resource that the pool has.
func (p *Pool) named(name string) *resource {
	return &p.all[slices.IndexFunc(p.all, func(r resource) bool { return r.name == name })]
}

func (r *resource) find(label string) int {
	return slices.IndexFunc(r.indices, func(x index) bool { return x.label == label })
}

func (r *resource) capacity() tdf.Capacity {
	c := tdf.Capacity{Name: r.name, Unit: r.unit}
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

// take takes an amount that fits, by the rule of tdf.Capacities: whole indices, and the fraction from the smallest part
// in which it fits, or else from a whole index.
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
