package redisstate

import (
	"cmp"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/counts"
)

// countOpened counts the tasks that a unit has opened.
func (s *Store) countOpened(definitions []task.Properties, o Outcome) {
	for i := range definitions {
		if o.Existing == nil || !o.Existing[i] {
			s.Counters.Count(definitions[i].Queue, counts.TransitionName(rules.VerbOpen, task.Open), 1)
		}
	}
}

// countClaims counts the claims of a call, and how long their tasks have waited.
func (s *Store) countClaims(c *ClaimResult) {
	s.Conn.Clock.See(c.Now)
	for i := range c.Claims {
		t := c.Claims[i].Task
		s.Counters.Count(t.Queue, counts.TransitionName(rules.VerbClaim, task.Running), 1)
		if opened := t.Opened(); t.Round == 0 && opened > 0 {
			s.Counters.CountSpan(t.Queue, counts.CountWait, c.Now.Sub(max(opened, t.StartAfter)))
		}
	}
}

// countUnits counts what the units of a call have done.
func (s *Store) countUnits(units []Unit, outcomes []Outcome) {
	for i, o := range outcomes {
		if o.Err != nil {
			continue
		}
		s.countOpened(units[i].Open, o)
		for j := range units[i].Moves {
			s.countMove(&units[i].Moves[j])
		}
	}
}

func (s *Store) countMove(m *rules.Move) {
	if kind := repaired(m); kind != "" {
		s.Counters.Count("", counts.CountFind+kind, 1)
	}
	name := counts.TransitionName(m.Verb, m.To)
	if m.Repair || name == "" || m.From == m.To {
		return
	}
	s.Counters.Count(m.Queue, name, 1)
	if m.Settles {
		s.Counters.Count(m.Queue, counts.TransitionName(rules.VerbExecute, task.Executed), 1)
	}
	if m.Ran > 0 {
		s.Counters.CountSpan(m.Queue, counts.CountRun, m.Ran)
	}
	if end := cmp.Or(m.Ended, s.Conn.Clock.About()); m.Opened > 0 && end > 0 {
		s.Counters.CountSpan(m.Queue, counts.CountLife, end.Sub(m.Opened))
	}
}

// FindKinds are the kinds of inconsistencies that are counted when they are repaired (docs/metrics.md).
var FindKinds = []string{"lists", "state", "unowned", "unfinished", "no_task"}

// repaired returns the kind of inconsistency that a Move repairs, or "" if it repairs none. A task that a manager of
// the original TDF has archived was consistent.
func repaired(m *rules.Move) string {
	switch {
	case !m.Repair || m.Verb == rules.VerbArchive:
		return ""
	case m.Verb == rules.VerbLose:
		return "unowned"
	case m.Verb != rules.VerbRepair:
		return "unfinished"
	case m.To == task.None:
		return "no_task"
	case m.From == m.To:
		return "lists"
	}
	return "state"
}
