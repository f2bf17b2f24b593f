package admin

import (
	"context"
	"slices"

	"github.com/tdf-framework/tdf/redisstate"
)

// A Finding is something about a task that is not as it should be (docs/guarantees.md, "The audit").
type Finding = redisstate.Finding

// Check walks through all tasks and returns what is wrong with them at this moment. It may be run beside
// the work; what components of the original TDF are about to do looks wrong until they have done it.
func (a *Admin) Check(ctx context.Context) ([]Finding, error) {
	s, err := a.redis(ctx)
	if err != nil {
		return nil, err
	}
	return s.Check(ctx)
}

// Repair mends what Check found, as far as the tasks still are as it found them, and returns how many it
// mended. Give it what was found twice, some time apart, or is Sure: else a move that is under way
// might be taken for something wrong. During the grace after an outage it ends no running round, and after a leap
// of Redis's clock no open task expires (docs/guarantees.md, "After an outage").
func (a *Admin) Repair(ctx context.Context, findings []Finding) (int, error) {
	s, err := a.redis(ctx)
	if err != nil {
		return 0, err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return 0, err
	}
	grace, err := s.Grace(ctx)
	if err != nil {
		return 0, err
	}
	findings = slices.Clone(findings)
	return s.Repair(ctx, a.Name, slices.DeleteFunc(findings, func(f Finding) bool { return now < grace.Holds(&f.Repair) }))
}

// Unchanged returns the findings of now that were there before, too, with nothing changed between.
func Unchanged(before, now []Finding) []Finding {
	signs := map[int64]string{}
	for _, f := range before {
		signs[f.ID] = f.Problem + f.Snapshot
	}
	var both []Finding
	for _, f := range now {
		if sign, found := signs[f.ID]; found && sign == f.Problem+f.Snapshot {
			both = append(both, f)
		}
	}
	return both
}
