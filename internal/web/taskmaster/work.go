package taskmaster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

const (
	mostClaimed = 100
	mostHeld    = 10_000 // tasks of one worker, whose leases each of its heartbeats renews

	moreClaims = 20 // after the first one, if Redis had no time to look at all due tasks
	morePause  = 20 * time.Millisecond
)

type claimRequest struct {
	WorkerID  string `json:"workerId"`
	QueueName string `json:"queueName"`
	MaxTasks  *int   `json:"maxTasks"`
}

// claimAnswer is the answer to a claim.
type claimAnswer struct {
	Tasks []taskToRun `json:"tasks"`
}

type taskToRun struct {
	TaskID   string          `json:"taskId"`
	Payload  json.RawMessage `json:"payload"`
	Attempts int             `json:"attempts"`
}

// claim claims tasks of a queue, also of one that the worker has not registered for. It counts as a heartbeat.
func (a *app) claim(ctx context.Context, c *wire.Call) (*wire.Answer, error) {
	var in claimRequest
	if err := c.Read(&in); err != nil {
		return nil, err
	}
	most := orUsual(in.MaxTasks, 1)
	if most < 1 || most > mostClaimed {
		return nil, wire.Invalid(fmt.Sprintf("maxTasks: want 1 to %d", mostClaimed))
	}
	w, err := a.workerOf(c, in.WorkerID)
	if err != nil {
		return nil, err
	}
	r := registration{WorkerID: in.WorkerID, QueueName: in.QueueName}
	if err := r.check(c.Token); err != nil {
		return nil, err
	}
	held, known, err := a.beat(ctx, w)
	if err == nil && !known {
		err = a.signUp(ctx, w, &r)
	}
	if err != nil {
		return nil, err
	}
	if held >= mostHeld {
		return wire.JSON(http.StatusOK, claimAnswer{Tasks: []taskToRun{}})
	}
	k, err := a.claimFor(ctx, w, in.QueueName, most)
	if err != nil {
		return nil, err
	}
	out, err := a.hand(ctx, w, k)
	if err != nil && k.Undo != nil {
		k.Undo()
		return nil, err
	}
	c.Undo = k.Undo
	return wire.JSON(http.StatusOK, out)
}

// claimFor claims tasks, and does so again while Redis had no time to look at all due tasks.
func (a *app) claimFor(ctx context.Context, w worker, queue string, most int) (k *broker.Claiming, err error) {
	request := broker.ClaimRequest{Most: most, Queues: []class.QueueShare{{Queue: queue}}}
	for range 1 + moreClaims {
		if k, err = a.broker.Claim(ctx, w.token, w.session, request); err != nil || len(k.Tasks) > 0 || !k.More ||
			!conn.Sleep(ctx, morePause) {
			break
		}
	}
	return k, err
}

// hand notes which tasks the worker holds, and returns the answer.
func (a *app) hand(ctx context.Context, w worker, k *broker.Claiming) (claimAnswer, error) {
	out := claimAnswer{Tasks: []taskToRun{}}
	var runs []presence.Run
	var again []int64
	for _, t := range k.Tasks {
		runs = append(runs, presence.Run{ID: t.ID, Round: t.Round, Claim: t.Claim})
		if t.Round > 0 {
			again = append(again, t.ID)
		}
	}
	if len(runs) == 0 {
		return out, nil
	}
	if err := a.store.Presence.Hold(ctx, w.name, a.keepNotes(), runs...); err != nil {
		return out, err
	}
	attempts := map[int64]int{}
	stored, err := a.store.Read(ctx, again, redisstate.Want{Fields: redisstate.Head | redisstate.Facts})
	for _, x := range stored {
		if x.Task != nil {
			attempts[x.ID] = attemptsOf(x.Task)
		}
	}
	for _, t := range k.Tasks {
		input := string(t.InputBase64)
		if t.Input != nil {
			input = *t.Input
		}
		out.Tasks = append(out.Tasks, taskToRun{a.ids.uuid(t.ID), payloadOf(input), max(attempts[t.ID], 1)})
	}
	return out, err
}

type completion struct {
	WorkerID string          `json:"workerId"`
	Result   json.RawMessage `json:"result"`
	Error    json.RawMessage `json:"error"`
}

func (a *app) complete(ctx context.Context, c *wire.Call) (*wire.Answer, error) {
	return a.report(ctx, c, func(in *completion) broker.Report {
		return broker.Report{Action: "complete", Result: in.Result}
	})
}

func (a *app) fail(ctx context.Context, c *wire.Call) (*wire.Answer, error) {
	return a.report(ctx, c, func(in *completion) broker.Report {
		var text string
		if json.Unmarshal(in.Error, &text) != nil {
			text = string(in.Error)
		}
		return broker.Report{Action: "fail", Error: cmp.Or(text, "the worker gave no error")}
	})
}

// report reports the round of a task that the worker runs, and settles it. So the status of the task is already right
// when the worker gets the answer.
func (a *app) report(ctx context.Context, c *wire.Call, of func(*completion) broker.Report) (*wire.Answer, error) {
	var in completion
	if err := c.Read(&in); err != nil {
		return nil, err
	}
	w, err := a.workerOf(c, in.WorkerID)
	if err != nil {
		return nil, err
	}
	id, err := a.ids.id(c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	stored, err := a.store.ReadOne(ctx, id, redisstate.Want{
		Fields: redisstate.Head | redisstate.Facts,
		Rounds: redisstate.LastRounds(1),
	})
	if err != nil && task.CodeOf(err) != task.CodeNotFound {
		return nil, err
	}
	// A token that may see no tasks does not learn whether there is one.
	absent := err != nil || stored.Task.Program != Program
	switch {
	case absent && c.Token.Owner() == "":
		return nil, task.ErrNoTask
	case absent, stored.Task.State != task.Running, stored.Task.Current().Worker != w.name:
		return nil, notOwned(c.PathValue("id"), in.WorkerID)
	}
	report := of(&in)
	report.Run = broker.Run{ID: id, Round: stored.Task.Round, Claim: stored.Task.Current().Claim}
	answers, err := a.broker.Report(ctx, w.token, w.session, []broker.Report{report})
	switch {
	case task.CodeOf(err) == task.CodeForbidden: // a worker of TDF has the same name
		return nil, notOwned(c.PathValue("id"), in.WorkerID)
	case err != nil:
		return nil, err
	case !answers[0].Accepted:
		return nil, notOwned(c.PathValue("id"), in.WorkerID)
	}
	if err := a.verify(ctx, &report); err != nil {
		return nil, err
	}
	if err := a.store.Presence.LetGo(ctx, w.name, presence.Run(report.Run)); err != nil {
		a.Log.Debug("a run that has ended is renewed once more", "task", id, "error", err)
	}
	return wire.Empty(http.StatusNoContent), nil
}

// verify returns an error if another report of the same run was faster, and said the opposite. A report that says the
// same is accepted again.
func (a *app) verify(ctx context.Context, r *broker.Report) error {
	stored, err := a.store.Read(ctx, []int64{r.ID}, redisstate.Want{
		Fields: redisstate.Facts,
		Rounds: redisstate.OneRound(r.Round),
	})
	if err != nil || stored[0].Task == nil {
		return err
	}
	if !r.Agrees(stored[0].Task.Rounds.At(r.Round)) {
		return task.NewError(task.CodeConflict, "another report of this attempt was faster, and said the opposite")
	}
	return nil
}

func notOwned(id, worker string) error {
	return task.NewError(task.CodeConflict, fmt.Sprintf("the task %.50s does not run on the worker %.100q", id, worker))
}
