package admin

import (
	"cmp"
	"fmt"

	"github.com/tdf-framework/tdf"
)

// lackingResources says what the live workers lack for a request, if none of them could run it even without other
// tasks. It names the offer that comes closest: the one that lacks the fewest resources.
func lackingResources(all []tdf.Offer, p tdf.Partition) string {
	if p.Resources == nil {
		return ""
	}
	var closest *tdf.Offer
	var least tdf.Amounts
	for i := range all {
		o := &all[i]
		lacks := tdf.CapacitiesOf(o.Resources).Lacking(p.Resources)
		if lacks == nil {
			return ""
		}
		if o.Resources != nil && (closest == nil || cmp.Less(len(lacks), len(least))) {
			closest, least = o, lacks
		}
	}
	if closest == nil {
		return "no live worker offers resources, and the task asks for " + p.Resources.String()
	}
	return fmt.Sprintf("no live worker offers %v; the closest offer, %v, lacks %v", p.Resources, closest.Resources, least)
}
