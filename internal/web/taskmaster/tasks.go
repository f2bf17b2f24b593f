package taskmaster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/walk"
)

// The statuses of tasks.
const (
	pending = "PENDING"
	running = "RUNNING"
	done    = "DONE"
	dead    = "DEAD"
)

// A task is a task as Taskmaster shows it.
type taskJSON struct {
	TaskID     string          `json:"taskId"`
	QueueName  string          `json:"queueName"`
	Status     string          `json:"status"`
	Result     json.RawMessage `json:"result"`
	LastError  *string         `json:"lastError"`
	Attempts   int             `json:"attempts"`
	Tags       []string        `json:"tags"`
	CreatedAt  time.Time       `json:"createdAt"`
	FinishedAt *time.Time      `json:"finishedAt"`
}

// statusOf returns the status of a task. An executed task is settled within the call that reports it, unless Redis goes
// away in between.
func statusOf(t *task.Task) string {
	switch {
	case t.State == task.Open:
		return pending
	case t.State == task.Running || t.State == task.Executed:
		return running
	case t.Outcome == string(task.Succeeded):
		return done
	}
	return dead
}

// attemptsOf returns the number of claims, with the one that is under way, and without those whose workers gave the
// task back.
func attemptsOf(t *task.Task) int {
	n := t.Fails + t.Timeouts + t.Losses
	if s := statusOf(t); s == running || s == done {
		n++
	}
	return n
}

// mostRounds is the number of last rounds among which the last error is looked for.
const mostRounds = 10

// lastFailed returns the number of the last round that failed or timed out, or -1.
func lastFailed(t *task.Task) int {
	for round := t.Round; round >= 0 && round > t.Round-mostRounds; round-- {
		if r := t.Rounds.At(round); r.FailedAt > 0 || r.TimedOutAt > 0 || r.LostAt > 0 && t.State.Finished() &&
			round == t.Round {
			return round
		}
	}
	return -1
}

func (a *app) view(t *task.Task) taskJSON {
	v := taskJSON{
		TaskID: a.ids.uuid(t.ID), QueueName: cmp.Or(t.Queue, class.DefaultQueue), Status: statusOf(t),
		Attempts: attemptsOf(t), Tags: decodeTags(t.Tags), CreatedAt: t.Opened().Std(),
	}
	if result := t.Rounds.At(t.LastRun()).Result; v.Status == done && json.Valid([]byte(result)) {
		v.Result = json.RawMessage(result)
	}
	if round := lastFailed(t); round >= 0 {
		v.LastError = &t.Rounds.At(round).Error
	}
	if v.Status == done || v.Status == dead {
		at := t.EndedAt().Std()
		v.FinishedAt = &at
	}
	return v
}

// Bounds of lists.
const (
	usualListed = 100
	mostListed  = 1000
	mostTexts   = 32 << 20 // bytes of results and errors in one answer
)

// want reads what view shows.
var want = redisstate.Want{
	Fields: redisstate.Head | redisstate.Facts, Rounds: redisstate.LastRounds(mostRounds), MaxBytes: mostTexts,
	Texts: func(t *task.Task) []redisstate.TextsOf {
		texts := []redisstate.TextsOf{{Round: t.LastRun(), Texts: task.TextResult}}
		if round := lastFailed(t); round >= 0 {
			texts = append(texts, redisstate.TextsOf{Round: round, Texts: task.TextError})
		}
		return texts
	},
}

// read returns the tasks of the interface among those with these ids. If their texts do not fit into one answer, it
// returns the first of them.
func (a *app) read(ctx context.Context, c *wire.Call, ids ...int64) ([]*task.Task, error) {
	stored, err := a.store.Read(ctx, ids, want)
	var all []*task.Task
	for _, x := range stored {
		if t := x.Task; t != nil && t.Program == Program && (c.Token.Owner() == "" || t.Owner == c.Token.Owner()) {
			all = append(all, t)
		}
	}
	return all, err
}

func (a *app) get(ctx context.Context, c *wire.Call) (*wire.Answer, error) {
	id, err := a.ids.id(c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	tasks, err := a.read(ctx, c, id)
	if err != nil {
		return nil, err
	}
	if len(tasks) == 0 {
		return nil, task.ErrNoTask
	}
	return wire.JSON(http.StatusOK, a.view(tasks[0]))
}

// list lists tasks, the newest first.
func (a *app) list(ctx context.Context, c *wire.Call) (*wire.Answer, error) {
	query := c.URL.Query()
	limit := usualListed
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, wire.Invalid(fmt.Sprintf("limit %.20q: want a number from 1 up", text))
		}
		limit = min(n, mostListed)
	}
	status := query.Get("status")
	if _, known := queries[status]; !known {
		return nil, wire.Invalid(fmt.Sprintf("status %.20q: want PENDING, RUNNING, DONE or DEAD", status))
	}
	find := a.newest
	if query.Get("queue") != "" {
		find = a.ofQueue
	}
	ids, err := find(ctx, c, query.Get("queue"), status, limit)
	if err != nil {
		return nil, err
	}
	tasks, err := a.read(ctx, c, ids...)
	if err != nil {
		return nil, err
	}
	views := []taskJSON{}
	for _, t := range tasks {
		views = append(views, a.view(t))
	}
	return wire.JSON(http.StatusOK, views)
}

// queries are the queries of the statuses.
var queries = map[string]manager.Query{
	"":      {},
	pending: {States: []task.State{task.Open}},
	running: {States: []task.State{task.Running, task.Executed}},
	done:    {Outcomes: []string{string(task.Succeeded)}},
	dead:    {Outcomes: []string{string(task.Failed), string(task.TimedOut), string(task.Expired), task.Cancelled}},
}

// mostPages bounds how much a list reads: tasks that do not belong to the answer take time, too.
const mostPages = 20

// ofQueue returns the ids of the newest tasks of a queue.
func (a *app) ofQueue(ctx context.Context, c *wire.Call, queue, status string, limit int) (ids []int64, err error) {
	q := queries[status]
	q.Group, q.Program, q.Owner = groupPrefix+queue, Program, c.Token.Owner()
	cursor := ""
	for range mostPages {
		page, err := c.Manager.Page(ctx, q, cursor, limit-len(ids))
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tasks {
			ids = append(ids, t.ID)
		}
		if cursor = page.Next; cursor == "" || len(ids) == limit {
			break
		}
	}
	return ids, nil
}

// newest returns the ids of the newest tasks of all queues, among the last tasks of the namespace.
func (a *app) newest(ctx context.Context, c *wire.Call, _, status string, limit int) (ids []int64, err error) {
	next, err := walk.LastID(ctx, a.store.Conn)
	for range mostPages {
		if next < 1 || err != nil {
			break
		}
		page := make([]int64, 0, mostListed)
		for ; next >= 1 && len(page) < mostListed; next-- {
			page = append(page, next)
		}
		stored, err := a.store.Read(ctx, page, redisstate.Want{Fields: redisstate.Head})
		if err != nil {
			return nil, err
		}
		for _, x := range stored {
			if t := x.Task; t != nil && t.Program == Program && (status == "" || statusOf(t) == status) &&
				(c.Token.Owner() == "" || t.Owner == c.Token.Owner()) {
				if ids = append(ids, t.ID); len(ids) == limit {
					return ids, nil
				}
			}
		}
	}
	return ids, err
}
