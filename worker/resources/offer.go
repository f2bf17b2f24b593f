package resources

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf"
)

// Words of the key resources.
const (
	auto = "auto" // what Detect has found
	none = "none" // nothing: the worker claims only tasks that ask for nothing
)

// An Offer is what a worker offers.
type Offer struct {
	Auto    bool        // also what the machine has, except the resources of Amounts
	Amounts tdf.Amounts // what the user has written
}

// Parse reads the key resources: "none", "auto", amounts such as "cpus=8 memory=16G licence=1", or "auto" and amounts.
// Nil means that the worker offers nothing.
func Parse(text string) (*Offer, error) {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
	if len(words) == 0 || slices.Equal(words, []string{none}) {
		return nil, nil
	}
	o := &Offer{Auto: slices.Contains(words, auto)}
	words = slices.DeleteFunc(words, func(word string) bool { return word == auto })
	all, err := tdf.ParseAmounts(strings.Join(words, " "))
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if tdf.HasIndices(a.Name) && a.Units%tdf.ResourceScale != 0 || a.Units > mostIndices*tdf.ResourceScale &&
			tdf.HasIndices(a.Name) {
			return nil, fmt.Errorf("%v: want a whole number up to %d", a, mostIndices)
		}
	}
	if o.Amounts = all; !o.Auto && all.Of(tdf.ResourceCPUs) == 0 {
		return nil, errNoCPUs
	}
	return o, nil
}

// mostIndices is the largest number of cores, and of GPUs.
const mostIndices = 10_000

var errNoCPUs = errors.New("cpus are missing; add auto, or cpus=N with N above 0")

// NewPool returns a Pool with everything that a worker on this machine offers. slots is the key concurrency: how many
// tasks that ask for nothing run at once.
//
// Cores are those of the machine as far as there are so many, so that a round runs on its cores alone. If the offer has
// more, its cores have no numbers.
func (o *Offer) NewPool(m *Machine, slots int) *Pool {
	found := m.resources()
	for _, a := range o.Amounts {
		found[a.Name] = override(a, found[a.Name])
	}
	if !o.Auto {
		maps.DeleteFunc(found, func(name string, _ resource) bool { return o.Amounts.Of(name) == 0 })
	}
	p := &Pool{}
	if _, has := found[tdf.ResourceGPUs]; has {
		p.variable = m.variable
	}
	found[tdf.ResourceSlots] = whole(tdf.Amount{Name: tdf.ResourceSlots, Units: int64(slots) * tdf.ResourceScale})
	for _, name := range sortedKeys(found) {
		p.all = append(p.all, found[name])
	}
	return p
}

// Offered returns what is free, without the slots of the tasks that ask for nothing.
func (p *Pool) Offered() tdf.Amounts {
	return slices.DeleteFunc(p.Free().Amounts(), func(a tdf.Amount) bool { return a.Name == tdf.ResourceSlots })
}

// override returns a resource as the user has written it.
func override(a tdf.Amount, found resource) resource {
	if !tdf.HasIndices(a.Name) {
		return whole(a)
	}
	n := int(a.Units / tdf.ResourceScale)
	if n <= len(found.indices) {
		found.indices = found.indices[:n]
		return found
	}
	r := resource{name: a.Name, unit: tdf.ResourceScale}
	for i := range n {
		label := strconv.Itoa(i)
		if a.Name == tdf.ResourceCPUs {
			label = noCore + label
		}
		r.indices = append(r.indices, index{label: label, free: r.unit})
	}
	return r
}

// noCore is the first character of the label of a core that the machine does not have.
const noCore = "~"

// whole returns a resource without indices.
func whole(a tdf.Amount) resource {
	return resource{name: a.Name, unit: tdf.CapacityOf(a).Unit, indices: []index{{free: a.Units}}}
}

func sortedKeys[K int | string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
