package server

import (
	"context"
	"errors"
	"fmt"
	_ "time/tzdata" // so that the servers of all machines know the same zones

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

type periodicStore interface {
	PeriodicTexts(ctx context.Context) (task.Hash, error)
	PeriodicText(ctx context.Context, name string) (string, error)
	ChangePeriodic(ctx context.Context, who, name, from, to string, open ...task.Properties) ([]int64, error)
	UnfinishedOf(ctx context.Context, ids []int64) ([]int64, error)
}

// periodicPause is the time after which a server reads all periodic tasks again. Until then, it does not notice that
// one of them has changed, and reads only those whose time has come.
const periodicPause = task.Seconds(10)

// mostTimes is the largest number of times of a periodic that a server handles in a round.
const mostTimes = 100

// knownPeriodics remembers what the server last read of the periodic tasks.
type knownPeriodics struct {
	read   task.Time
	next   map[string]task.Time // by name; without those that are paused or invalid
	logged map[string]string    // the last error of each invalid record
}

// openPeriodic opens the tasks of periodics whose time has come (docs/periodic.md). Several servers may do so at once:
// one step opens the tasks and changes the record of the periodic, if no other client has changed it.
func (s *Server) openPeriodic(ctx context.Context, now task.Time) (err error) {
	if err := s.readPeriodics(ctx, now); err != nil {
		return err
	}
	for name, next := range s.periodics.next {
		if next <= now && ctx.Err() == nil {
			err = errors.Join(err, s.openDue(ctx, name, now))
		}
	}
	return err
}

func (s *Server) readPeriodics(ctx context.Context, now task.Time) error {
	p := &s.periodics
	if since := now.Sub(p.read); 0 <= since && since < periodicPause {
		return nil
	}
	texts, err := s.store.PeriodicTexts(ctx)
	if err != nil {
		return err
	}
	before := p.logged
	p.read, p.next, p.logged = now, map[string]task.Time{}, map[string]string{}
	for name, text := range texts {
		r, err := task.ParsePeriodic(name, text)
		if err != nil {
			if p.logged[name] = err.Error(); before[name] != err.Error() {
				s.log.Error("a periodic is invalid, and opens no tasks", "error", err)
			}
			continue
		}
		s.expect(r)
	}
	return nil
}

// expect remembers the next time of a periodic.
func (s *Server) expect(r *task.PeriodicRecord) {
	if r.PausedBy == "" && r.Next > 0 {
		s.periodics.next[r.Name] = r.Next
	} else {
		delete(s.periodics.next, r.Name)
	}
}

// openDue handles the times of a periodic that have come.
func (s *Server) openDue(ctx context.Context, name string, now task.Time) error {
	text, err := s.store.PeriodicText(ctx, name)
	if err != nil {
		return err
	}
	delete(s.periodics.next, name) // until the record was read completely
	if text == "" {
		return nil
	}
	r, err := task.ParsePeriodic(name, text)
	if err != nil {
		return nil // readPeriodics reports it
	}
	for range mostTimes {
		step, due, err := r.Step(now)
		if err != nil || !due {
			break
		}
		next, err := s.take(ctx, r, text, step)
		if errors.Is(err, redisstate.ErrRecordChanged) {
			s.periodics.read = 0 // another client has changed it
			return nil
		}
		if err != nil {
			return fmt.Errorf("periodic %q: %w", name, err)
		}
		r, text = next, next.String()
	}
	s.expect(r)
	return nil
}

// take handles one time of a periodic, and returns its new record. If the tasks cannot be opened now, the record keeps
// the reason, and the server tries again at the next time.
func (s *Server) take(
	ctx context.Context, r *task.PeriodicRecord, text string, step task.PeriodicStep,
) (*task.PeriodicRecord, error) {
	run := task.PeriodicRun{Time: step.Time, Outcome: task.PeriodicMissed, Why: step.Why}
	var unfinished []int64
	if step.Open && r.Overlap == task.OverlapSkip {
		var err error
		if unfinished, err = s.store.UnfinishedOf(ctx, r.IDs); err != nil {
			return nil, err
		}
	}
	switch {
	case len(unfinished) > 0:
		run.Outcome, run.Why = task.PeriodicSkipped, fmt.Sprintf(
			"tasks of an earlier time are unfinished: %d, such as task %d", len(unfinished), unfinished[0])
	case step.Open:
		after := r.Opening(step.Why, step.Time, step.Next, nil)
		ids, err := s.store.ChangePeriodic(ctx, "periodic "+r.Name, r.Name, text, after.String(), r.Properties()...)
		if err == nil {
			after.IDs = ids
			s.log.Info("periodic opened", "name", r.Name, "time", step.Time.Std().UTC(), "tasks", len(ids), "first", ids[0])
			return after, nil
		}
		if ctx.Err() != nil || errors.Is(err, redisstate.ErrRecordChanged) {
			return nil, err
		}
		run.Outcome, run.Why = task.PeriodicFailed, err.Error()
	}
	after := r.After(run, step.Next)
	if _, err := s.store.ChangePeriodic(ctx, s.name, r.Name, text, after.String()); err != nil {
		return nil, err
	}
	s.log.Warn("periodic opened no tasks", "name", r.Name, "time", step.Time.Std().UTC(), "outcome", run.Outcome,
		"why", run.Why)
	return after, nil
}
