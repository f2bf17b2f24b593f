package server

import (
	"context"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/limits"
)

// trialRecheck is how often the server looks at the task that tries a held source. Reports of workers make the source
// due at once.
const trialRecheck = tdf.Seconds(5)

// A sourceUse is a held source, and whether a task tries it now (docs/lifecycle.md, "Held programs").
type sourceUse struct {
	tdf.FailingSource
	tries bool
}

// plan returns how many held tasks of a source return, whether these try it, and when the server looks again. The tasks
// of a source that is held no longer all return. The source is then nil.
func (u *sourceUse) plan(now tdf.Time) (most int, trial bool, next tdf.Time) {
	switch {
	case u == nil:
		return limits.MostReturned, false, now.Add(tdf.LimitRecheck)
	case u.tries:
		return 0, false, now.Add(trialRecheck)
	case now < u.NextTrial():
		return 0, false, min(u.NextTrial(), now.Add(tdf.LimitRecheck))
	}
	return 1, true, now.Add(trialRecheck)
}

// sourcesOf returns the sources that hold tasks, by reason. It ends the hold of a source whose trial has started, and
// of one of which Redis has lost the failures.
func (s *Server) sourcesOf(ctx context.Context, due []limits.Due, now tdf.Time) (map[string]*sourceUse, error) {
	var names []string
	for i := range due {
		if source := tdf.SourceOf(due[i].Reason); source != "" {
			names = append(names, source)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	all, err := s.store.HeldSources(ctx, names...)
	if err != nil {
		return nil, err
	}
	uses := map[string]*sourceUse{}
	for _, source := range all {
		use, started := &sourceUse{FailingSource: source}, source.Last == 0
		if source.Trial != 0 {
			want := redisstate.Want{Fields: redisstate.Facts, Rounds: redisstate.LastRounds(1)}
			stored, err := s.store.Read(ctx, []int64{source.Trial}, want)
			if err != nil {
				return nil, err
			}
			if t := stored[0].Task; t != nil {
				tries, has := source.IsTriedBy(t, now)
				use.tries, started = tries, started || has
			}
		}
		if started {
			if err := s.store.Started(ctx, source.Name); err != nil {
				return nil, err
			}
			continue
		}
		uses[tdf.SourceReason(source.Name)] = use
	}
	return uses, nil
}
