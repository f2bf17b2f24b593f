package admin

import (
	"context"
	"fmt"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/periodics"
)

// vitalsOfPeriodics reads the periodic tasks.
func vitalsOfPeriodics(ctx context.Context, r *redisstate.Store, v *vitals) error {
	texts, err := periodics.Of(r).PeriodicTexts(ctx)
	v.periodics, v.badPeriodics = task.ParsePeriodics(texts)
	return err
}

// overdue is how late a periodic may be. A server opens its tasks within seconds.
const overdue = task.Seconds(60)

func (v *vitals) isOverdue(r *task.PeriodicRecord) bool {
	return r.PausedBy == "" && r.Next > 0 && v.at.Sub(r.Next) > overdue
}

// periodicTasks reports each periodic whose record is invalid, whose last time failed, or whose next time is overdue.
// Without a server, noServer says why.
func (v *vitals) periodicTasks(d *diagnoses) {
	toSee := fix("see when and why", StepListPeriodics)
	for _, err := range v.badPeriodics[:min(len(v.badPeriodics), mostNamed)] {
		d.problem("periodic", Fact{
			Code: FactPeriodicInvalid, Text: err.Error() + ": it opens no tasks",
			Fix: fix("remove the periodic and store it again", StepRemovePeriodic),
		})
	}
	_, noServer := v.noServer()
	named := 0
	for _, r := range v.periodics {
		var f Fact
		switch {
		case r.Last != nil && r.Last.Outcome == task.PeriodicFailed:
			text := fmt.Sprintf("periodic %s opened no tasks: %s", r.Name, r.Last.Why)
			f = Fact{Code: FactPeriodicFailed, About: r.Name, Text: text, Fix: toSee}
		case v.isOverdue(r) && !noServer:
			text := fmt.Sprintf("periodic %s is overdue by %s", r.Name, span(v.at.Sub(r.Next)))
			f = Fact{Code: FactPeriodicOverdue, About: r.Name, Text: text, Fix: fix("read the server's log")}
		case r.Last != nil && r.Last.Time.Sub(v.at) > overdue:
			f = Fact{
				Code: FactPeriodicAhead, About: r.Name,
				Text: fmt.Sprintf("the last time of periodic %s lies in the future, because the clock was set back", r.Name),
				Fix:  fix("let its times begin anew", StepResumePeriodic),
			}
		default:
			continue
		}
		if named++; named <= mostNamed {
			d.problem("periodic", f)
		}
	}
	if more := named - mostNamed; more > 0 {
		text := fmt.Sprintf("%d more periodics have problems", more)
		d.problem("periodic", Fact{Code: FactPeriodicFailed, Text: text, Fix: toSee})
	}
}
