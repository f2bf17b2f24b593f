package resources

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/tdf-framework/tdf/internal/class"
)

// New returns a Pool with everything that a worker on this machine offers. slots is the key concurrency: how many
// tasks that ask for nothing run at once.
//
// Cores are those of the machine as far as there are so many, so that a round runs on its cores alone. If the offer has
// more, its cores have no numbers. Pools that are made with the same Machine get different cores and GPUs.
func New(o *class.ResourceOffer, m *Machine, slots int) *Pool {
	found := m.resources()
	for _, a := range o.Amounts {
		found[a.Name] = override(a, found[a.Name], m.given[a.Name])
	}
	if !o.Auto {
		maps.DeleteFunc(found, func(name string, _ resource) bool { return o.Amounts.Of(name) == 0 })
	}
	p := &Pool{}
	if _, has := found[class.GPUs]; has {
		p.variable = cmp.Or(m.Variable, cudaDevices)
	}
	found[class.Slots] = whole(class.Amount{Name: class.Slots, Units: int64(slots) * class.Scale})
	if m.given == nil {
		m.given = map[string]int{}
	}
	for _, name := range sortedKeys(found) {
		if class.HasIndices(name) {
			m.given[name] += len(found[name].indices)
		}
		p.all = append(p.all, found[name])
	}
	p.whole = slices.DeleteFunc(capacities(p.all).Amounts(), isSlots)
	return p
}

func isSlots(a class.Amount) bool { return a.Name == class.Slots }

// Offered returns what the worker offers to tasks that ask for something.
func (p *Pool) Offered() class.Amounts { return p.whole }

// roundsPerCore bounds how many rounds run at once, because tasks may ask for a small part of a core, or for none.
const (
	roundsPerCore = 4
	mostRounds    = 1000
)

// MostRounds returns how many rounds a worker that offers these resources runs at once.
func MostRounds(offered class.Amounts) int {
	cores := int(offered.Of(class.CPUs) / class.Scale)
	return min(roundsPerCore*cores, mostRounds)
}

// override returns a resource as the user has written it. Other Pools have the first given ones.
func override(a class.Amount, found resource, given int) resource {
	if !class.HasIndices(a.Name) {
		return whole(a)
	}
	n := int(a.Units / class.Scale)
	if n <= len(found.indices) {
		found.indices = found.indices[:n]
		return found
	}
	r := resource{name: a.Name, unit: class.Scale}
	for i := range n {
		label := strconv.Itoa(given + i)
		if a.Name == class.CPUs {
			label = noCore + label
		}
		r.indices = append(r.indices, index{label: label, free: r.unit})
	}
	return r
}

// noCore is the first character of the label of a core that the machine does not have.
const noCore = "~"

// whole returns a resource without indices.
func whole(a class.Amount) resource {
	return resource{name: a.Name, unit: class.CapacityOf(a).Unit, indices: []index{{free: a.Units}}}
}

func sortedKeys[K int | string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
