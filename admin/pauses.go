package admin

import (
	"fmt"

	"github.com/tdf-framework/tdf"
)

// pauses returns a check for each pause that keeps workers from claiming the task (docs/lifecycle.md, "Pausing").
func (c *situation) pauses() (checks []Check) {
	for _, p := range c.paused {
		if _, holds := (tdf.Paused{p.Pausable}).Holds(&c.task.Properties); holds {
			text := fmt.Sprintf("%s: paused by %s, %s", p.Text(), p.By, c.agoText(p.Since))
			checks = append(checks, Check{"pause", Blocked, text, "end the pause"})
		}
	}
	return checks
}

// mostPausesNamed is the largest number of pauses that doctor names.
const mostPausesNamed = 5

// pauses reports what is paused, because a user may have forgotten it.
func (v *vitals) pauses(d *diagnoses) {
	for _, p := range v.paused[:min(len(v.paused), mostPausesNamed)] {
		d.notice("pause", fmt.Sprintf("%s: paused by %s, %s ago", p.Text(), p.By, span(v.at.Sub(p.Since))), "end the pause")
	}
	if more := len(v.paused) - mostPausesNamed; more > 0 {
		d.notice("pause", fmt.Sprintf("%d more queues or groups are paused", more), "end the pause")
	}
}
