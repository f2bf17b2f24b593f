package admin

import "fmt"

// pauses reports what is paused, because a user may have forgotten it.
func (v *vitals) pauses(d *diagnoses) {
	for _, p := range v.paused[:min(len(v.paused), mostNamed)] {
		d.notice("pause", v.pauseFact(p))
	}
	if more := len(v.paused) - mostNamed; more > 0 {
		d.notice("pause", Fact{Code: FactPaused, Text: fmt.Sprintf("%d more queues or groups are paused", more), Fix: toEndPause})
	}
}
