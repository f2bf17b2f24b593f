package admin

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/updates"
	"github.com/tdf-framework/tdf/redisstate/walk"
)

// LastID returns the highest id that any task has had, or 0 if no task was ever opened.
func (a *Admin) LastID(ctx context.Context) (int64, error) {
	return walk.LastID(ctx, a.redis().Conn)
}

// A Meta is the meta of a task.
type Meta = listing.Meta

// Metas returns the meta of each task of a group, newest first. The tasks may have any state. Metas reads no other
// properties. If a task moves during the call, Metas still returns its meta exactly once. If a task is opened during
// the call, its meta may be missing. After an error, the sequence ends.
func (a *Admin) Metas(ctx context.Context, group string) iter.Seq2[Meta, error] {
	return listing.Metas(ctx, a.redis(), group)
}

// recentTexts is the number of rounds whose texts Recent reads.
const recentTexts = 5

// Recent reads a whole task, but of its texts only those of the last five rounds, which bounds their size. If the owner
// is not "", the tasks of others do not exist. The error wraps [task.ErrNoTask].
func (a *Admin) Recent(ctx context.Context, id int64, owner string) (*manager.Task, error) {
	head, err := a.redis().ReadOne(ctx, id, redisstate.Want{Fields: redisstate.Head})
	if err != nil {
		return nil, err
	}
	if owner != "" && head.Task.Owner != owner {
		return nil, fmt.Errorf("task %d: %w", id, task.ErrNoTask)
	}
	stored, err := a.redis().ReadOne(ctx, id, redisstate.Want{
		Fields:    redisstate.Whole,
		TextsFrom: head.Task.Round - recentTexts + 1,
	})
	if err != nil {
		return nil, err
	}
	// an invalid property is ignored here, because the server reports it
	return manager.TaskOf(stored.Task, true), nil
}

// ErrNoRound is the error if a task has no round of this number.
var ErrNoRound = task.NewError(task.CodeNotFound, "there is no such round")

// Round returns a summary of a task, and the texts of one of its rounds. The error wraps [task.ErrNoTask] or
// [ErrNoRound].
func (a *Admin) Round(ctx context.Context, id int64, round int) (*manager.Task, *manager.Round, error) {
	return a.round(ctx, id, func(t *task.Task) (int, error) {
		if round < 0 || round > t.Round {
			return 0, fmt.Errorf("read round %d of task %d: %w: the task is in round %d", round, id, ErrNoRound,
				t.Round)
		}
		return round, nil
	})
}

// LastRun does the same as [Admin.Round] for the round that ran last.
func (a *Admin) LastRun(ctx context.Context, id int64) (*manager.Task, *manager.Round, error) {
	return a.round(ctx, id, func(t *task.Task) (int, error) { return t.LastRun(), nil })
}

// CurrentRound does the same as [Admin.Round] for the round that waits or runs. If the task is finished, it reads the
// round that ran last.
func (a *Admin) CurrentRound(ctx context.Context, id int64) (*manager.Task, *manager.Round, error) {
	return a.round(ctx, id, func(t *task.Task) (int, error) {
		if t.State.Finished() {
			return t.LastRun(), nil
		}
		return t.Round, nil
	})
}

func (a *Admin) round(ctx context.Context, id int64, choose func(*task.Task) (int, error)) (*manager.Task,
	*manager.Round, error,
) {
	s := a.redis()
	stored, err := s.ReadOne(ctx, id, redisstate.Want{
		Fields: redisstate.Facts,
		Rounds: redisstate.LastRounds(listing.SummaryRounds),
	})
	if err != nil {
		return nil, nil, err
	}
	t := stored.Task
	n, err := choose(t)
	if err != nil {
		return nil, nil, err
	}
	stored, err = s.ReadOne(ctx, id, redisstate.Want{
		Fields: redisstate.Facts, Rounds: redisstate.OneRound(n),
		Texts: redisstate.SameTexts(redisstate.TextsOf{
			Round: n,
			Texts: task.TextOutput | task.TextError | task.TextResult | task.TextTail,
		}),
	})
	if err != nil {
		return nil, nil, err
	}
	t.Rounds[n] = stored.Task.Rounds.At(n)
	view := manager.TaskOf(t, false)
	return view, view.RoundNumber(n), nil
}

// An Update is a line that a program reported while it ran (docs/programs.md, "The round's directory").
type Update struct {
	Round  int       `json:"round"`
	Number int       `json:"number"` // the number of the update in its round; the first is 1
	Time   time.Time `json:"time"`
	Line   string    `json:"line"`
}

// Updates returns up to limit updates of a task, in order. The first of them is the update that follows after. If after
// is the zero Update, Updates starts with the task's first update.
func (a *Admin) Updates(ctx context.Context, id int64, after Update, limit int) ([]Update, error) {
	if limit < 1 {
		return nil, fmt.Errorf("read %d updates of task %d: limit must be at least 1", limit, id)
	}
	s := a.redis()
	found, err := s.Updates.After(ctx, id, updates.Update{Round: after.Round, Number: after.Number}, limit)
	return updatesOf(found), err
}

// LastUpdates returns the newest updates of a task, at most limit of them, in order, and the number of all its updates.
func (a *Admin) LastUpdates(ctx context.Context, id int64, limit int) (last []Update, all int, err error) {
	if limit < 1 {
		return nil, 0, fmt.Errorf("read the last %d updates of task %d: limit must be at least 1", limit, id)
	}
	s := a.redis()
	if all, err = s.Updates.Count(ctx, id); err != nil || all == 0 {
		return nil, all, err
	}
	found, err := s.Updates.Last(ctx, id, 0, limit)
	return updatesOf(found), all, err
}

func updatesOf(found []updates.Update) []Update {
	all := make([]Update, len(found))
	for i, u := range found {
		all[i] = Update{u.Round, u.Number, u.Time.Std(), u.Line}
	}
	return all
}

// Follow asks the worker of a running task for frequent reports. The worker begins with its next renewal of the lease.
// For 15 s, it then reports every second, instead of at each renewal. It reports the progress, the updates, and the end
// of the output (Round.Tail). Call Follow again to get frequent reports for longer.
func (a *Admin) Follow(ctx context.Context, id int64) error {
	s := a.redis()
	return s.Updates.Follow(ctx, id)
}
