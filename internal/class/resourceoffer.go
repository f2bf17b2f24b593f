package class

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A ResourceOffer is what a worker offers, as its key resources says (docs/resources.md).
type ResourceOffer struct {
	Auto    bool    // also what the machine has, except the resources of Amounts
	Amounts Amounts // what the user has written
}

// Words of the key resources.
const (
	autoResources = "auto"
	noResources   = "none"
)

// detected is how many resources a machine may have by itself: cpus, memory and gpus.
const detected = 3

// MaxIndices is the largest number of cores, and of GPUs, of a worker.
const MaxIndices = 10_000

// ParseResourceOffer reads the key resources: "none", "auto", amounts such as "cpus=8 memory=16G licence=1", or "auto"
// and amounts. Nil means that the worker offers nothing, and claims only tasks that ask for nothing. The error has no
// subject: it says what the text should be.
func ParseResourceOffer(text string) (*ResourceOffer, error) {
	words := resourceWords(text)
	if len(words) == 0 || slices.Equal(words, []string{noResources}) {
		return nil, nil
	}
	o := &ResourceOffer{Auto: slices.Contains(words, autoResources)}
	words = slices.DeleteFunc(words, func(word string) bool { return word == autoResources })
	all, err := ParseAmounts(strings.Join(words, " "))
	if err != nil {
		return nil, err
	}
	if o.Auto && len(all) > MaxResources-detected {
		return nil, fmt.Errorf("%d resources are named beside auto; at most %d are allowed", len(all), MaxResources-detected)
	}
	for _, a := range all {
		if HasIndices(a.Name) && (a.Units%Scale != 0 || a.Units > MaxIndices*Scale) {
			return nil, fmt.Errorf("%v: want a whole number up to %d", a, MaxIndices)
		}
	}
	o.Amounts = all
	hasCPUs := func(a Amount) bool { return a.Name == CPUs }
	if all.Of(CPUs) == 0 && (!o.Auto || slices.ContainsFunc(all, hasCPUs)) {
		return nil, errNoCPUs
	}
	return o, nil
}

var errNoCPUs = errors.New("cpus are missing; add auto, or cpus=N with N above 0")

// AtLeast returns what the worker offers on any machine: with auto, one core. It returns nil if the worker offers
// nothing.
func (o *ResourceOffer) AtLeast() Amounts {
	if o == nil {
		return nil
	}
	all := slices.Clone(o.Amounts)
	if all.Of(CPUs) == 0 {
		all = append(all, Amount{CPUs, Scale})
		all.sort()
	}
	return all
}
