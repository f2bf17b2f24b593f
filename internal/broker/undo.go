package broker

import (
	"cmp"
	"context"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/redisstate"
)

// An Applier makes moves: a *redisstate.Store.
type Applier interface {
	Apply(ctx context.Context, who string, units ...redisstate.Unit) ([]redisstate.Outcome, error)
}

// Undo gives back claims that no worker has got. Their tasks are free at once, and nothing is counted. A task in its
// last round cannot be given back, so it is lost when its lease ends.
func Undo(ctx context.Context, s Applier, worker, why string, claims ...redisstate.Claim) error {
	var units []redisstate.Unit
	for _, x := range claims {
		if m, err := rules.Release(x.Task, why); err == nil {
			m.Claim = x.ID
			units = append(units, redisstate.Unit{Moves: []rules.Move{m}})
		}
	}
	_, err := s.Apply(ctx, worker, units...)
	return err
}

// Sound returns the claims whose tasks can be run, and Moves that let the others fail.
func Sound(all []redisstate.Claim) (sound []redisstate.Claim, failed []rules.Move) {
	for _, x := range all {
		_, _, wrong := x.Task.Arguments()
		if wrong = cmp.Or(x.Invalid, wrong); wrong == nil {
			sound = append(sound, x)
			continue
		}
		end := Ending{Claim: x.ID, Result: rules.Result{Refused: true, Reason: wrong.Error(), InProcess: true}}
		failed = append(failed, end.Move(x.Task))
	}
	return sound, failed
}
