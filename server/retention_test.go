package server

import (
	"fmt"
	"math"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// finish opens a task with these properties in the group g, and ends it with a success.
func (s *site) finish(d tdf.Properties) int64 {
	s.Helper()
	d.Group = "g"
	id := s.open(d)[0]
	if err := s.execute(s.claim(60), tdf.Result{Output: "out", Exit: "0"}); err != nil {
		s.Fatal(err)
	}
	s.round()
	s.mustBe(id, tdf.Succeeded, 0)
	return id
}

func (s *site) archive(id int64) {
	s.Helper()
	m, err := s.mustBe(id, tdf.Succeeded, 0).Archive()
	if err != nil {
		s.Fatal(err)
	}
	outcomes, err := s.store.Apply(s.Context(), "manager", redisstate.Unit{Moves: []tdf.Move{m}})
	if err != nil || outcomes[0].Err != nil {
		s.Fatal(outcomes, err)
	}
}

// due returns the task's score in due.
func (s *site) due(id int64) tdf.Time {
	s.Helper()
	score, err := s.cli.ZScore(s.Context(), s.ns+":due", fmt.Sprint(id)).Result()
	if err != nil {
		s.Fatal(err)
	}
	return tdf.Time(score)
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
	onEach(t, func(s *site) {
		brief, long, archived, plain := define(), define(), define(), define()
		brief.KeepFinished, long.KeepFinished = 1e-6, 3600
		archived.KeepArchived = 0
		a, b, c, d := s.finish(brief), s.finish(long), s.finish(archived), s.finish(plain)
		s.archive(c)
		s.archive(d)
		done := s.round()
		if !s.isGone(a) || !s.isGone(c) {
			s.Errorf("tasks whose period is over: gone: %v, %v; the rounds did %v", s.isGone(a), s.isGone(c), done)
		}
		task := s.mustBe(b, tdf.Succeeded, 0)
		if period := s.due(b).Sub(task.Current().Entered[tdf.Succeeded]); math.Round(float64(period)) != 3600 {
			s.Errorf("the task with a period of an hour is due after %v s", period)
		}
		s.mustBe(d, tdf.Archived, 0)
		if s.do("ZSCORE", "$due", d) != nil {
			s.Error("a task without a limit is due")
		}
		s.checkConsistent()
	})
}

// A client wrote the property into the hash of a finished task. A walk of the audit notices it.
func TestRetentionIsNoticedByTheAudit(t *testing.T) {
	onEach(t, func(s *site) {
		id := s.finish(define())
		s.do("HSET", fmt.Sprintf("$task:%d", id), "keep_finished", "0.5", "0:succeeded", s.now().Add(-1).String())
		next := New("next", settings, s.store, quiet()) // a new server walks at once
		for range 2 {
			if _, err := next.RunOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if !s.isGone(id) {
			s.Error("the task still exists")
		}
		s.checkConsistent()
	})
}

// After the clock leapt forward, the server removes no task before the end of the grace period.
func TestRetentionAfterALeap(t *testing.T) {
	onEachClock(t, func(s *leaper) {
		d := define()
		d.KeepFinished = 1800
		id := s.finish(d)
		s.leap(3600)
		s.round()
		s.round()
		s.mustBe(id, tdf.Succeeded, 0)
		s.endGrace()
		s.do("ZADD", "$due", s.now().Add(-1).String(), id)
		s.round()
		if !s.isGone(id) {
			s.Error("after the grace period, the task still exists")
		}
		s.checkConsistent()
	})
}
