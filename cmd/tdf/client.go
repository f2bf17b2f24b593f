package main

import (
	"context"
	"iter"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/internal/acting"
	"github.com/tdf-framework/tdf/internal/friend"
	engine "github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/stdtime"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// A client is a manager whose tasks are read as the rule book has them. Commands that do not need the rule book use the manager, or
// admin, instead.
type client struct{ *manager.Manager }

// The types of internal packages that a client takes and returns.
type (
	taskQuery  = engine.Query
	taskPage   = engine.Page
	queryError = engine.QueryError
	taskAction = acting.Action
	taskRef    = acting.Ref
	taskResult = acting.Result
)

func (c *client) admin() *admin.Admin { return admin.New(c.Manager) }

func (c *client) store(ctx context.Context) (*redisstate.Store, error) {
	return friend.StoreOf(ctx, c.Manager)
}

func (c *client) now(ctx context.Context) (tdf.Time, error) {
	s, err := c.store(ctx)
	if err != nil {
		return 0, err
	}
	return s.Now(ctx)
}

func (c *client) task(ctx context.Context, id int64) (*tdf.Task, error) {
	t, err := c.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return friend.TaskOf(t), nil
}

func (c *client) find(ctx context.Context, q taskQuery, after string, limit int) (taskPage, error) {
	s, err := c.store(ctx)
	if err != nil {
		return taskPage{}, err
	}
	return engine.Find(ctx, s, q, after, limit)
}

// all returns summaries.
func (c *client) all(ctx context.Context, q taskQuery) iter.Seq2[*tdf.Task, error] {
	return c.each(ctx, engine.Each, q, func(*tdf.Task) []redisstate.TextsOf { return nil })
}

// results returns tasks by id with the result of the last run, and if printed with its stdout and stderr.
func (c *client) results(ctx context.Context, q taskQuery, printed bool) iter.Seq2[*tdf.Task, error] {
	return c.each(ctx, engine.ByID, q, func(t *tdf.Task) []redisstate.TextsOf {
		all := append([]redisstate.TextsOf{engine.OfTask}, redisstate.TextsOf{Round: t.LastRun(), Texts: tdf.TextResult})
		if printed {
			all = append(all, redisstate.TextsOf{Round: t.LastRun(), Texts: tdf.TextOutput}, redisstate.TextsOf{Round: t.LastRun(), Texts: tdf.TextError})
		}
		return all
	})
}

// failures groups failures.
func (c *client) failures(ctx context.Context, q taskQuery, after string) (admin.Failures, error) {
	order := manager.NewestFirst
	if q.OldestFirst {
		order = manager.OldestFirst
	}
	return c.admin().Failures(ctx, manager.Query{
		IDs: q.IDs, States: q.States, Group: q.Group, Outcomes: q.Outcomes, Program: q.Program, Worker: q.Worker, Exit: q.Exit,
		Since: stdtime.Time(q.After), Before: stdtime.Time(q.Before), Output: q.Output, Error: q.Error, Failure: q.Failure, Order: order,
	}, after)
}

type eachTask func(context.Context, engine.Store, taskQuery, func(*tdf.Task) []redisstate.TextsOf, func(*tdf.Task) bool) error

func (c *client) each(ctx context.Context, each eachTask, q taskQuery, texts func(*tdf.Task) []redisstate.TextsOf) iter.Seq2[*tdf.Task, error] {
	return func(yield func(*tdf.Task, error) bool) {
		s, err := c.store(ctx)
		if err == nil {
			err = each(ctx, s, q, texts, func(t *tdf.Task) bool { return yield(t, nil) })
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// Rounds that printed can be asked for beside those with a number.
const (
	lastRound    = -1
	currentRound = -2
)

// printed reads a task with the texts of one round, and returns the number of that round.
func (c *client) printed(ctx context.Context, id int64, round int) (*tdf.Task, int, error) {
	var t *manager.Task
	var r *manager.Round
	var err error
	switch round {
	case lastRound:
		t, r, err = c.admin().LastRun(ctx, id)
	case currentRound:
		t, r, err = c.admin().CurrentRound(ctx, id)
	default:
		t, r, err = c.admin().Round(ctx, id, round)
	}
	if err != nil {
		return nil, 0, err
	}
	return friend.TaskOf(t), r.Number, nil
}

func (c *client) act(ctx context.Context, action taskAction, refs ...taskRef) (taskResult, error) {
	s, err := c.store(ctx)
	if err != nil {
		return taskResult{}, err
	}
	return acting.Do(ctx, s, friend.PartsOf(c.Manager).Name, action, refs...)
}

// define returns the properties of a task with the configuration's defaults.
func (c *client) define(program, source, input string) tdf.Properties {
	p := friend.PartsOf(c.Manager).Config.TaskDefaults
	p.Program, p.Source, p.Input = program, source, input
	return p
}

type opener func(context.Context, ...manager.Definition) ([]*manager.Task, error)

// open opens tasks by one of the manager's methods, and returns their ids.
func (c *client) open(ctx context.Context, by opener, all ...tdf.Properties) ([]int64, error) {
	definitions := make([]manager.Definition, len(all))
	for i := range all {
		definitions[i] = friend.DefinitionOf(all[i]).(manager.Definition)
	}
	tasks, err := by(ctx, definitions...)
	ids := make([]int64, len(tasks))
	for i, t := range tasks {
		ids[i] = t.ID
	}
	return ids, err
}
