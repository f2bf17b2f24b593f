package admin

import "fmt"

// managers reports callbacks that have failed for good, and managers that handle tasks of the same groups.
func (v *vitals) managers(d *diagnoses) {
	if v.callbacks > 0 {
		d.problem("managers", Fact{
			Code: FactCallbackFailed, Text: fmt.Sprintf("the callbacks of %d tasks have failed for good, and are not "+
				"called again", v.callbacks),
			Fix: fix("correct the manager, and run the callbacks again", StepRetryCallbacks),
		})
	}
	for i := range v.handlings {
		for j := range v.handlings[:i] {
			one, other := &v.handlings[j], &v.handlings[i]
			if groups := one.Overlap(other); len(groups) > 0 {
				d.notice("managers", Fact{
					Code: FactManagersOverlap, About: one.Manager + ", " + other.Manager,
					Text: fmt.Sprintf("the managers %s and %s handle tasks of the same groups, and each task gets the "+
						"callback of only one of them: %s", one.Manager, other.Manager, joinNames(groups)),
					Fix: fix("give each manager its own groups, unless both have the same callbacks"),
				})
				return // the first is enough
			}
		}
	}
}
