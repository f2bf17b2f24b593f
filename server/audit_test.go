package server

import (
	"slices"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// archiveByHand archives a task as the manager of the original TDF does, without changing the hash.
func (s *site) archiveByHand(id int, from string, at tdf.Time) {
	s.Helper()
	s.do("ZREM", "$"+from, id)
	s.do("ZADD", "$archived", at.String(), id)
}

// Tasks that the manager of the original TDF archived are consistent. The audit adds the properties that this project's
// manager writes.
func TestTasksArchivedByTheOriginal(t *testing.T) {
	onEach(t, func(s *site) {
		s.byHand(1)
		s.claimByHand(1, "0", s.now())
		s.executeByHand(1, "0", "")
		s.round()
		s.byHand(2)
		s.do("HSET", "$task:2", "state", "timed_out")
		s.do("ZREM", "$open", "2")
		s.archiveByHand(1, "succeeded", s.now().Add(-3600))
		s.archiveByHand(2, "timed_out", s.now().Add(-1800))
		findings, err := s.store.Check(s.Context())
		if err != nil || len(findings) > 0 {
			s.Fatalf("check: %v, %v", findings, err)
		}
		s.server.audit.page = redisstate.WalkPage{} // restart the walk through all tasks
		s.server.audit.walked = 0
		if done := s.round(); done["archived"] != 2 || done.Total() != 2 {
			s.Errorf("the audit did %v", done)
		}
		for i, want := range []tdf.State{tdf.Succeeded, tdf.TimedOut} {
			if task := s.mustBe(int64(i+1), tdf.Archived, 0); task.Outcome != string(want) {
				s.Errorf("the outcome of task %d is %q", i+1, task.Outcome)
			}
		}
		if at := s.cli.ZScore(s.Context(), s.ns+":archived", "1").Val(); tdf.Time(at) > s.now().Add(-3599) {
			s.Errorf("the task was archived at %v", tdf.Time(at))
		}
		if again := s.round(); again.Total() != 0 {
			s.Errorf("another round did %v", again)
		}
		s.checkConsistent()
	})
}

// If a user deletes the hashes of a group's tasks, the group counts as finished.
func TestGroupWithGhostsIsFinished(t *testing.T) {
	onEach(t, func(s *site) {
		d := define()
		d.Group = "g"
		s.open(slices.Repeat([]tdf.Properties{d}, 3)...)
		for id := 1; id <= 3; id++ {
			s.do("DEL", "$task:"+itoa(id))
		}
		s.claimable() // a claim removes ids without a task from the open list
		s.round()
		if counts, err := s.store.Counts(s.Context(), "g"); err != nil || counts.Total() != 0 {
			s.Errorf("the group has %v, %v", counts, err)
		}
		s.checkConsistent()
	})
}
