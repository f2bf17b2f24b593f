package server

import (
	"context"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/limits"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// trialRecheck is how often the server looks at the task that tries a held source. Reports of workers make the source
// due at once.
const trialRecheck = tdf.Seconds(5)

// mostTrials is how many held tasks the server reads to find one that tries their source.
const mostTrials = 100

// A sourceUse is a held source, and whether a task tries it now (docs/lifecycle.md, "Held programs").
type sourceUse struct {
	tdf.FailingSource
	tries bool
	last  *tdf.Task // the task that last tried it, or nil
}

// plan returns how many held tasks of a source the server reads, and when it looks again. The tasks of a source that is
// held no longer all return. The source is then nil.
func (u *sourceUse) plan(now tdf.Time) (most int, next tdf.Time) {
	switch {
	case u == nil:
		return limits.MostReturned, now.Add(tdf.LimitRecheck)
	case u.tries:
		return 0, now.Add(trialRecheck)
	case now < u.NextTrial():
		return 0, min(u.NextTrial(), now.Add(tdf.LimitRecheck))
	}
	return mostTrials, now.Add(trialRecheck)
}

// choose chooses the task that tries the source: one that a live worker may claim. A task that has tried it before, and
// is put off for the worker that could not start it, comes first, so that other workers try it. choose also returns the
// tasks before the chosen one that no live worker may claim, because they would hide the others.
func (u *sourceUse) choose(held []*tdf.Task, workers []presence.WorkerStatus, now tdf.Time) (freed []*tdf.Task,
	trial *tdf.Task,
) {
	if t := u.last; t != nil && len(t.NotOn) > 0 && t.UnfitHosts == 0 && t.HeldFor() == tdf.SourceReason(u.Name) &&
		isServed(t, workers, now) {
		return nil, t
	}
	for _, t := range held {
		if isServed(t, workers, now) {
			return freed, t
		}
		freed = append(freed, t)
	}
	return freed, nil
}

// isServed reports whether a live worker may claim the task.
func isServed(t *tdf.Task, workers []presence.WorkerStatus, now tdf.Time) bool {
	need := t.Requirement()
	return slices.ContainsFunc(workers, func(w presence.WorkerStatus) bool {
		return w.Claims(now) && class.Serves(&w.Offer, need) && !t.Refuses(w.Name, now)
	})
}

// readSources reads the sources that hold tasks, and the workers. It ends the hold of a source whose trial has started,
// and of one that has not failed for a long time.
func (s *Server) readSources(ctx context.Context, c *check) error {
	var names []string
	for i := range c.due {
		if source := tdf.SourceOf(c.due[i].Reason); source != "" {
			names = append(names, source)
		}
	}
	if len(names) == 0 {
		return nil
	}
	all, err := s.store.HeldSources(ctx, names...)
	if err != nil {
		return err
	}
	if c.workers, err = s.store.Workers(ctx); err != nil {
		return err
	}
	c.sources = map[string]*sourceUse{}
	for _, source := range all {
		use := &sourceUse{FailingSource: source}
		started := source.Ends(c.now)
		if source.Trial != 0 && !started {
			if started, err = s.readTrial(ctx, use, c); err != nil {
				return err
			}
		}
		if !started {
			c.sources[tdf.SourceReason(source.Name)] = use
		} else if err := s.store.Started(ctx, source.Name); err != nil {
			return err
		}
	}
	return nil
}

// readTrial reads the task that tries a source, and reports whether it has started it. A trial that no live worker may
// claim is none.
func (s *Server) readTrial(ctx context.Context, use *sourceUse, c *check) (started bool, err error) {
	want := redisstate.Want{Fields: redisstate.Facts, Rounds: redisstate.LastRounds(1)}
	stored, err := s.store.Read(ctx, []int64{use.Trial}, want)
	if err != nil || stored[0].Task == nil {
		return false, err
	}
	t := stored[0].Task
	use.last = t
	use.tries, started = use.IsTriedBy(t)
	use.tries = use.tries && (t.State == tdf.Running || isServed(t, c.workers, c.now))
	return started, nil
}
