package server

import (
	"context"
	"slices"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/audit"
	"github.com/tdf-framework/tdf/redisstate/callbacks"
	"github.com/tdf-framework/tdf/redisstate/walk"
)

// archiveByHand archives a task as the manager of the original TDF does, without changing the hash.
func (s *site) archiveByHand(id int, from string, at task.Time) {
	s.Helper()
	s.do("ZREM", "$"+from, id)
	s.do("ZADD", "$archived", at.String(), id)
}

// Tasks that the manager of the original TDF archived are consistent. The audit adds the properties that this project's
// manager writes.
func TestTasksArchivedByTheOriginal(t *testing.T) {
	s := newSite(t)
	s.byHand(1)
	s.claimByHand(1, "0", s.now())
	s.executeByHand(1, "0", "")
	s.round()
	s.byHand(2)
	s.do("HSET", "$task:2", "state", "timed_out")
	s.do("ZREM", "$open", "2")
	s.archiveByHand(1, "succeeded", s.now().Add(-3600))
	s.archiveByHand(2, "timed_out", s.now().Add(-1800))
	expect.MustLen(s, expect.Result(audit.Of(s.store).Check(s.Context())).Value(s), 0)
	s.server.audit.page = walk.Page{} // restart the walk through all tasks
	s.server.audit.walked = 0
	done := s.round()
	expect.Equal(s, done["archived"], 2)
	expect.Equal(s, done.Total(), 2)
	for i, want := range []task.State{task.Succeeded, task.TimedOut} {
		expect.Equal(s, s.mustBe(int64(i+1), task.Archived, 0).Outcome, string(want), "the outcome of task", i+1)
	}
	at := s.cli.ZScore(s.Context(), s.ns+":archived", "1").Val()
	expect.True(s, task.Time(at) <= s.now().Add(-3599), "the task was archived at", task.Time(at))
	expect.Equal(s, s.round().Total(), 0, "another round did")
	s.checkConsistent()
}

// The server completes a task that the original's manager has archived, without the audit's walk.
func TestTaskArchivedByOriginalIsCompleted(t *testing.T) {
	s := newSite(t)
	d := define()
	d.Group, d.KeepArchived = "g", 3600
	ids := s.open(d, d, d, d)
	for range ids {
		expect.NoError(s, s.execute(s.claim(60), rules.Result{Exit: "0"}))
	}
	s.round()
	now := s.now()
	for i, at := range []task.Time{now, now.Add(9), now.Add(-9), now.Add(86400)} {
		s.archiveByHand(int(ids[i]), "succeeded", at)
	}
	expect.NoError(s, s.server.adoptArchived(s.Context(), now.Add(2*clockSkew), Done{}))
	expect.Equal(s, expect.Result(s.store.Counts(s.Context(), "g")).Value(s)[task.Archived], 3, "counts of the group")
	expect.Equal(s, s.mustBe(ids[2], task.Archived, 0).Outcome, "succeeded", "outcome")
}

// After the clock was set back, the server still completes the tasks that the original's manager archives.
func TestTaskArchivedAfterTheClockWasSetBack(t *testing.T) {
	s := newSite(t)
	id := s.open(define())[0]
	expect.NoError(s, s.execute(s.claim(60), rules.Result{Exit: "0"}))
	s.round()
	now := s.now()
	s.server.audit.archived.Order = float64(now.Add(3600)) // as if the clock had been set back by an hour
	expect.NoError(s, s.server.adoptArchived(s.Context(), now, Done{}))
	s.archiveByHand(int(id), "succeeded", now)
	expect.NoError(s, s.server.adoptArchived(s.Context(), now.Add(2*clockSkew), Done{}))
	s.mustBe(id, task.Archived, 0)
}

// If a user deletes the hashes of a group's tasks, the group counts as finished.
func TestGroupWithGhostsIsFinished(t *testing.T) {
	s := newSite(t)
	d := define()
	d.Group = "g"
	s.open(slices.Repeat([]task.Properties{d}, 3)...)
	for id := 1; id <= 3; id++ {
		s.do("DEL", "$task:"+itoa(id))
	}
	s.claimable() // a claim removes ids without a task from the open list
	s.round()
	expect.Equal(s, expect.Result(s.store.Counts(s.Context(), "g")).Value(s).Total(), 0, "the group")
	s.checkConsistent()
}

// A worker of the original TDF times out a round by itself. Soon after that, the group counts the task as timed out, or as open.
func TestRoundThatOriginalWorkerTimesOut(t *testing.T) {
	s := newSite(t)
	s.server.audit.grace = 60
	d := define()
	d.Group, d.Timeout = "g", 5
	d2 := d
	d2.MaxTimeouts = 1
	dependent := define()
	dependent.AfterAny = &task.Dependencies{Tasks: []int64{1}}
	ids := s.open(d, d2)
	s.open(dependent)
	s.round()
	now := s.now()
	for _, id := range ids {
		s.claimByHand(int(id), "0", now)
	}
	s.round()
	for i, key := range []string{"$task:1", "$task:2"} {
		s.do("ZREM", "$running", ids[i])
		s.do("HSET", key, "timeouts", "1", "0:timeout", now.String())
		s.do("ZADD", "$due", "1", ids[i]) // as if the margin were over
	}
	s.do("HSET", "$task:1", "state", "timed_out", "0:timed_out", now.String())
	s.do("ZADD", "$timed_out", now.String(), ids[0])
	s.do("HSET", "$task:2", "state", "open", "round", "1", "1:open", now.String())
	s.do("ZADD", "$open", now.String(), ids[1])
	s.server.audit.walked, s.server.audit.head = s.now(), map[int64]task.Time{ids[1]: s.now()} // so that only the due times lead to the tasks
	for range 3 {
		s.round()
	}
	counts := expect.Result(s.store.Counts(s.Context(), "g")).Value(s)
	expect.Equal(s, counts[task.TimedOut], 1)
	expect.Equal(s, counts[task.Open], 1)
	got := s.task(3)
	expect.True(s, !got.Waits(), "the dependent still waits", got.Log)
}

// A start_after in the past is no error, however far in the past it is.
func TestOriginalTaskWithNegativeStart(t *testing.T) {
	s := newSite(t)
	s.byHand(1, "start_after", "-1", "timeout", " 5 ", "end_before", "1e18")
	s.do("ZADD", "$open", "-1", "1")
	s.round()
	c := s.claim(60)
	expect.Equal(s, c.Task.ID, 1)
	expect.NoError(s, c.Invalid)
	expect.Equal(s, c.Task.Timeout, 5)
}

// walkStore is a store whose open list has the given ids. It counts the pages of the walk.
type walkStore struct {
	auditStore
	open  []int64
	pages int
}

func (s *walkStore) Overlooked(context.Context, task.Time, task.Time) ([]int64, error) {
	return nil, nil
}

func (s *walkStore) List(context.Context, task.State, string, int64, int64) ([]int64, error) {
	return s.open, nil
}

func (s *walkStore) Walk(_ context.Context, from walk.Page, _ int64) ([]int64, walk.Page, bool, error) {
	s.pages++
	return []int64{1000 + int64(s.pages)}, from, false, nil
}

// Between two walks, an audit examines only these tasks at the head of the open list: the tasks that are new there, and
// the tasks that no audit has examined for headPause.
func TestWhatAnAuditExamines(t *testing.T) {
	t.Parallel()
	store := &walkStore{open: []int64{1, 2}}
	a := auditor{store: store}
	for _, c := range []struct {
		at    task.Time
		walks bool
		open  []int64
		want  []int64
		pages int
	}{
		{100, true, []int64{1, 2}, []int64{1, 2, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010}, 10},
		{101, false, []int64{1, 2}, nil, 10},
		{102, false, []int64{2, 3}, []int64{3}, 10},
		{103, false, []int64{1, 3}, []int64{1}, 10}, // task 1 is at the head of the list again
		{159, false, []int64{1, 3}, nil, 10},
		{162, false, []int64{1, 3}, []int64{3}, 10},
		{90, false, []int64{1, 3}, []int64{1, 3}, 10}, // the clock was set back
	} {
		store.open = c.open
		expect.Equal(t, expect.Result(a.ids(t.Context(), c.at, c.walks)).Value(t), c.want, c.pages)
		expect.Equal(t, store.pages, c.pages)
	}
}

// An audit walks if walkPause has passed since the last walk, or if the clock was set back.
func TestAuditWalks(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		s.round()
		first := s.server.audit.walked
		expect.MustTrue(t, first != 0, "the first audit did not walk")
		s.round()
		expect.Equal(t, s.server.audit.walked, first, "the second audit walked")
		for _, walked := range []task.Time{first.Add(-walkPause), s.now().Add(3600)} {
			s.server.audit.walked = walked
			s.round()
			got := s.server.audit.walked
			expect.NotEqual(t, got, walked)
			expect.Compare(t, got, "<=", s.now())
		}
	})
}

// The audit removes the records of failed callbacks of tasks that are gone or have changed, and no others.
func TestRecordsOfFailedCallbacks(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		s.byHand(1)
		record := callbacks.Failure{State: task.Open, Attempts: 3, GivenUp: true}
		for id := range int64(301) {
			f := record
			f.Task = id
			expect.NoError(s, s.store.Callbacks.SayFailure(s.Context(), f))
		}
		expect.Eventually(s, "one record is left", func() bool {
			s.server.audit.walked = 0
			s.round()
			return s.cli.HLen(s.Context(), s.ns+":callbacks").Val() == 1
		})
		failed := expect.Result(s.store.FailedCallbacks(s.Context(), 10)).Value(s)
		expect.MustLen(s, failed, 1)
		expect.Equal(s, failed[0].Task, int64(1))
	})
}
