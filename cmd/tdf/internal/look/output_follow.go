package look

import (
	"context"
	"fmt"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// followRound prints the output of a round as it arrives, until the round ends.
func (p *printout) followRound(ctx context.Context, t *manager.Task) error {
	if t.State == task.Open {
		p.sayOpen(t)
	} else {
		p.a.Say("round %d is running on %s; its output arrives from the worker's next heartbeat on, by default "+
			"within 10 s", p.round, p.r.Worker)
	}
	for part, err := range p.m.Admin().FollowOutput(ctx, t, p.r) {
		if err != nil {
			return p.explained(ctx, err)
		}
		if err := p.printPart(&part); err != nil {
			return p.explained(ctx, err)
		}
	}
	return nil
}

func (p *printout) sayOpen(t *manager.Task) {
	earlier := ""
	if t.Round > 0 {
		earlier = fmt.Sprintf("; output of the last run: tdf output %d", t.ID)
	}
	p.a.Say("waiting for round %d: task %d is open (see tdf explain %d)%s", p.round, t.ID, t.ID, earlier)
}

func (p *printout) printPart(part *admin.OutputPart) error {
	if part.Ended && part.Round.Worker == "" {
		p.a.Say("round %d did not run: task %d is %s", p.round, p.id, part.Task.State)
	}
	if part.Skipped {
		p.a.Say("(a part of the output is missing here)")
	}
	if part.Unknown {
		p.a.Say("the round has ended; its whole output: tdf output %d --round %d, and with --error", p.id, p.round)
	}
	return p.print(part.Text)
}
