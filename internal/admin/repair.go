package admin

import (
	"context"
	"slices"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/audit"
)

// A Finding is an inconsistent task that [Admin.Check] found (docs/guarantees.md, "The audit").
type Finding struct {
	ID      int64      `json:"id"`
	Problem string     `json:"problem"`
	Repair  task.State `json:"repair,omitempty"` // the state of the task after a repair; "" if it cannot be repaired
	Sure    bool       `json:"sure"`             // the problem cannot be a move in progress, so a repair is safe at once

	finding audit.Finding
}

// String returns the problem and the id of the task.
func (f Finding) String() string { return f.finding.String() }

// Repairable reports whether [Admin.Repair] can repair the task.
func (f Finding) Repairable() bool { return f.finding.Repair.Verb != "" }

// Check reads all tasks and returns a Finding for each inconsistent task. It may run beside all other work. While a
// component of the original TDF moves a task, that task also looks inconsistent.
func (a *Admin) Check(ctx context.Context) ([]Finding, error) {
	s := a.redis()
	found, err := audit.Of(s).Check(ctx)
	findings := make([]Finding, len(found))
	for i, f := range found {
		findings[i] = Finding{ID: f.ID, Problem: f.Problem, Repair: f.Repair.To, Sure: f.Certain, finding: f}
	}
	return findings, err
}

// Repair repairs tasks that Check found, and returns how many tasks it repaired. It skips tasks that have changed since
// the check. Pass only findings that are Sure, or that two checks some time apart have found ([Unchanged]). Any other
// finding may be a move in progress. During the grace period after an outage, Repair ends no running round. After a
// leap of Redis's clock, it expires no open task (docs/guarantees.md, "After an outage").
func (a *Admin) Repair(ctx context.Context, findings []Finding) (int, error) {
	s := a.redis()
	now, err := s.Now(ctx)
	if err != nil {
		return 0, err
	}
	grace, err := s.Presence.Grace(ctx)
	if err != nil {
		return 0, err
	}
	var found []audit.Finding
	for _, f := range findings {
		if now >= grace.Holds(&f.finding.Repair) {
			found = append(found, f.finding)
		}
	}
	return audit.Of(s).Repair(ctx, a.parts.Name, found)
}

// Unchanged returns the findings that two checks have in common, if their tasks have not changed between the checks.
// The parameters are the findings of the earlier check and of the later check.
func Unchanged(before, now []Finding) []Finding {
	type sight struct {
		id            int64
		problem, sign string
	}
	seen := map[sight]bool{}
	for _, f := range before {
		seen[sight{f.ID, f.Problem, f.finding.Snapshot}] = true
	}
	return slices.DeleteFunc(slices.Clone(now), func(f Finding) bool {
		return !seen[sight{f.ID, f.Problem, f.finding.Snapshot}]
	})
}
