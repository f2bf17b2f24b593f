package server

import (
	"fmt"
	"math"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// finish opens a task with these properties in the group g, and ends it with a success.
func (s *site) finish(d task.Properties) int64 {
	s.Helper()
	d.Group = "g"
	id := s.open(d)[0]
	expect.NoError(s, s.execute(s.claim(60), rules.Result{Output: "out", Exit: "0"}))
	s.round()
	s.mustBe(id, task.Succeeded, 0)
	return id
}

func (s *site) archive(id int64) {
	s.Helper()
	m := expect.Result(rules.Archive(s.mustBe(id, task.Succeeded, 0))).Value(s)
	outcomes := expect.Result(s.store.Apply(s.Context(), "manager", redisstate.Unit{Moves: []rules.Move{m}})).Value(s)
	expect.NoError(s, outcomes[0].Err)
}

// due returns the task's score in due.
func (s *site) due(id int64) task.Time {
	s.Helper()
	score := expect.Result(s.cli.ZScore(s.Context(), s.ns+":due", fmt.Sprint(id)).Result()).Value(s)
	return task.Time(score)
}

// isGone reports whether Redis holds nothing about the task.
func (s *site) isGone(id int64) bool {
	exists := s.do("EXISTS", fmt.Sprintf("$task:%d", id)).(int64)
	for _, list := range []string{"$due", "$group:g", "$succeeded", "$archived"} {
		if s.do("ZSCORE", list, id) != nil {
			exists++
		}
	}
	return exists == 0
}

// The server removes finished and archived tasks at the end of their retention periods, and no others
// (docs/lifecycle.md, "Retention").
func TestRetention(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		brief, long, archived, plain := define(), define(), define(), define()
		brief.KeepFinished, long.KeepFinished = 1e-6, 3600
		archived.KeepArchived = 0
		a, b, c, d := s.finish(brief), s.finish(long), s.finish(archived), s.finish(plain)
		s.archive(c)
		s.archive(d)
		done := s.round()
		expect.True(s, s.isGone(a), "tasks whose period is over: gone", s.isGone(a), s.isGone(c), "the rounds did", done)
		expect.True(s, s.isGone(c), "tasks whose period is over: gone", s.isGone(a), s.isGone(c), "the rounds did", done)
		one := s.mustBe(b, task.Succeeded, 0)
		period := s.due(b).Sub(one.Current().Entered[task.Succeeded])
		expect.Equal(s, math.Round(float64(period)), 3600, "the task with a period of an hour is due after", period, "s")
		s.mustBe(d, task.Archived, 0)
		expect.True(s, s.do("ZSCORE", "$due", d) == nil, "a task without a limit is due")
		s.checkConsistent()
	})
}

// A client wrote the property into the hash of a finished task. A walk of the audit notices it.
func TestRetentionIsNoticedByTheAudit(t *testing.T) {
	s := newSite(t)
	id := s.finish(define())
	s.do("HSET", fmt.Sprintf("$task:%d", id), "keep_finished", "0.5", "0:succeeded", s.now().Add(-1).String())
	next := New("next", settings, s.store, quiet()) // a new server walks at once
	for range 2 {
		expect.Result(next.RunOnce(t.Context())).OK(t)
	}
	expect.True(s, s.isGone(id), "the task still exists")
	s.checkConsistent()
}

// After the clock leapt forward, the server removes no task and no outputs before the end of the grace period.
func TestRetentionAfterALeap(t *testing.T) {
	t.Parallel()
	onEachClock(t, func(s *leaper) {
		d, outputs := define(), define()
		d.KeepFinished, outputs.KeepOutputs = 1800, 1800
		removed, kept := s.finish(d), s.finish(outputs)
		s.leap(3600)
		s.round()
		s.round()
		s.mustBe(removed, task.Succeeded, 0)
		expect.True(s, len(s.written(kept)) != 0, "the outputs were removed")
		s.checkConsistent() // the server waits on purpose
		s.endGrace()
		past := s.now().Add(-1).String()
		s.do("ZADD", "$due", past, removed, past, kept)
		s.round()
		expect.True(s, s.isGone(removed), "after the grace period, the task still exists")
		expect.Len(s, s.written(kept), 0, "after the grace period, the other task still")
		s.checkConsistent()
	})
}

// written lists the properties of round 0 and of the task that a program writes, and that Redis still holds.
func (s *site) written(id int64) (names []string) {
	s.Helper()
	for _, name := range []string{"0:output", "0:error", "0:result", "0:tail", "checkpoint", "1:output"} {
		if s.do("HEXISTS", fmt.Sprintf("$task:%d", id), name).(int64) > 0 {
			names = append(names, name)
		}
	}
	if s.do("EXISTS", fmt.Sprintf("$updates:%d", id)).(int64) > 0 {
		names = append(names, "updates")
	}
	return names
}

// report gives a finished task all that a program can write.
func (s *site) report(id int64) {
	s.Helper()
	s.do("HSET", fmt.Sprintf("$task:%d", id), "0:result", "{}", "0:tail", "t", "checkpoint", "c")
	s.do("XADD", fmt.Sprintf("$updates:%d", id), "0-1", "time", "1", "line", "x")
}

// The server removes the outputs of finished and archived tasks, and nothing else. The tasks keep their places.
func TestKeepOutputs(t *testing.T) {
	s := newSite(t)
	brief, long := define(), define()
	brief.KeepOutputs, long.KeepOutputs = 3600, 7200
	a, b, c, d := s.finish(brief), s.finish(brief), s.finish(long), s.finish(define())
	s.archive(b)
	for _, id := range []int64{a, b, c, d} {
		s.report(id)
	}
	places := func() string {
		text := ""
		for _, list := range []string{"$succeeded", "$archived", "$group:g"} {
			text += fmt.Sprint(s.do("ZRANGE", list, 0, -1, "WITHSCORES"))
		}
		return text
	}
	before := places()
	for _, id := range []int64{a, b, c, d} { // an hour passes
		key := fmt.Sprintf("$task:%d", id)
		s.do("HSET", key, "0:succeeded", s.mustBeFinished(id).Current().Entered[task.Succeeded].Add(-3600).String())
		s.do("ZADD", "$due", s.now().Add(-1).String(), id)
	}
	s.round()
	for id, want := range map[int64]int{a: 0, b: 0, c: 6, d: 6} {
		expect.Len(s, s.written(id), want, "task", id, "still … of them")
	}
	expect.Equal(s, places(), before, "the tasks moved from … to")
	one := s.mustBe(b, task.Archived, 0)
	expect.Equal(s, one.OutputsFrom, 1)
	expect.NotEqual(s, one.OutputsRemoved, 0)
	expect.Equal(s, one.Current().Exit, "0")
	expect.Equal(s, one.Outcome, "succeeded")
	expect.Equal(s, s.do("ZSCORE", "$due", a), nil, "the tasks are due at the wrong times")
	expect.Equal(s, s.due(c).Sub(s.mustBeFinished(c).Current().Entered[task.Succeeded]), 7200, "the tasks are due at the wrong times")
	s.checkConsistent()
}

func (s *site) mustBeFinished(id int64) *task.Task {
	s.Helper()
	stored := expect.Result(s.store.ReadOne(s.Context(), id, redisstate.Want{Fields: redisstate.Whole})).Value(s)
	expect.MustTrue(s, stored.Task.State.Finished(), stored)
	return stored.Task
}

// A task without its outputs can be retried. The outputs of the new round have a period of their own.
func TestRetryAfterTheOutputsAreRemoved(t *testing.T) {
	s := newSite(t)
	d := define()
	d.KeepOutputs = 1e-6
	id := s.finish(d)
	s.round()
	expect.MustLen(s, s.written(id), 0, "it still")
	m := expect.Result(rules.Reopen(s.mustBe(id, task.Succeeded, 0))).Value(s)
	outcomes := expect.Result(s.store.Apply(s.Context(), "user", redisstate.Unit{Moves: []rules.Move{m}})).Value(s)
	expect.NoError(s, outcomes[0].Err)
	expect.NoError(s, s.execute(s.claim(60), rules.Result{Output: "again", Exit: "0"}))
	expect.Equal(s, fmt.Sprint(s.written(id)), "[1:output]", "before it is settled, it")
	s.round()
	s.round()
	expect.Equal(s, s.mustBe(id, task.Succeeded, 1).OutputsFrom, 2)
	expect.Len(s, s.written(id), 0)
	s.checkConsistent()
}

// A user retries the task after the server has decided, and before its Move arrives. The Move then changes nothing.
func TestOutputsOfARetriedTaskStay(t *testing.T) {
	s := newSite(t)
	d := define()
	d.KeepOutputs = 3600
	id := s.finish(d)
	one := s.mustBeFinished(id)
	remove, ok := rules.Settle(one, one.Current().Entered[task.Succeeded].Add(3600), nil)
	reopen, err := rules.Reopen(one)
	expect.MustTrue(s, ok, remove, err)
	expect.MustEqual(s, remove.Verb, rules.VerbRemoveOutputs)
	expect.NoError(s, err)
	outcomes := expect.Result(s.store.Apply(s.Context(), "x", redisstate.Unit{Moves: []rules.Move{reopen}})).Value(s)
	expect.NoError(s, outcomes[0].Err)
	outcomes, err = s.store.Apply(s.Context(), "x", redisstate.Unit{Moves: []rules.Move{remove}})
	expect.NoError(s, err)
	expect.Fails(s, outcomes[0].Err, "")
	expect.Len(s, s.written(id), 2)
	s.checkConsistent()
}
