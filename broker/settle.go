package broker

import (
	"cmp"
	"context"
	"errors"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// A Settler reads and moves tasks: a *redisstate.Store.
type Settler interface {
	Read(ctx context.Context, ids []int64, want redisstate.Want) ([]redisstate.Stored, error)
	Apply(ctx context.Context, who string, units ...redisstate.Unit) ([]redisstate.Outcome, error)
}

// reserved is how long a server leaves a result to the caller of Reserve.
const reserved = tdf.Seconds(1)

// Reserve changes the Move that reports a round, so that the server leaves the result to its caller for a second.
// Without it, Settle is right, too, but the server may be faster, and then the end of the task is among the counts of
// the server (docs/metrics.md), which this process sees only a second later.
func Reserve(m *tdf.Move) { m.NextDue = tdf.Moment{After: reserved} }

// Settle settles tasks whose rounds the caller has just reported, with the rules of the server. So the answer to a call
// that reports a round is already true: the next reader sees whether the task has succeeded, has failed, or is open
// again. The name who is written into the logs of the tasks.
//
// An interface whose calls must be true reports with [Broker.Report] and Report.Settles, or with the methods of
// redisstate.Store after [Reserve]. Then it calls Settle with the ids. Both steps may be repeated, and each one may
// fail alone: if this process dies between them, or Settle returns an error, the server settles the task later. If the
// server, or a repeated call, settles the task in the same moment, Redis carries out one of the two equal Moves,
// because each names the state, the round and the claim from which it starts. Settle ignores tasks that are not
// executed, or not there.
//
// Settle only decides about results. Time-outs, lost tasks, expired tasks, and tasks that wait for this one stay with
// the server, because they depend on the grace period, which the server alone begins in time. The server takes up the
// tasks that wait for this one within a second.
func Settle(ctx context.Context, s Settler, who string, ids ...int64) error {
	stored, err := s.Read(ctx, ids, redisstate.Want{Fields: redisstate.Rules})
	if err != nil {
		return err
	}
	var units []redisstate.Unit
	for _, t := range stored {
		if t.Task == nil {
			continue
		}
		if m, ok := t.Task.SettleResult(); ok {
			m.Claim = cmp.Or(t.Task.Current().Claim, tdf.NoClaim)
			units = append(units, redisstate.Unit{Moves: []tdf.Move{m}})
		}
	}
	outcomes, err := s.Apply(ctx, who, units...)
	for _, o := range outcomes {
		if o.Err != nil && !errors.As(o.Err, new(*tdf.StateError)) {
			err = cmp.Or(err, o.Err)
		}
	}
	return err
}
