package skuld

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/internal/worker/rounddir"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/updates"
)

const (
	longestClaim  = 7 * 24 * time.Hour
	longestUpdate = 1 << 10
	maxResult     = 1 << 20

	undoTime = time.Minute // a claim may be for a week, so it is worth to wait for Redis

	// A claim begins with a short lease. So a task is soon free again if Redis has claimed it and the answer is lost.
	firstLease = task.Seconds(60)
)

// workerOf returns the name under which the holder of a token claims tasks. No worker over HTTP can have a name with
// two slashes.
func workerOf(c *wire.Call) string { return c.Token.Name + "/skuld/client" }

// leaseOf returns the length of a claim from a number of milliseconds.
func leaseOf(dt int64) (task.Seconds, error) {
	if dt < 1 || dt > longestClaim.Milliseconds() {
		return 0, wire.Invalid(fmt.Sprintf("dt: want milliseconds from 1 to %d", longestClaim.Milliseconds()))
	}
	return task.Seconds(dt) / 1000, nil
}

type claiming struct {
	Queue string `json:"queue"`
	DT    int64  `json:"dt"`
}

type claimed struct {
	Task *wireTask `json:"task"` // nil if there is none
}

// claim claims the task with the highest priority, and of these, the oldest.
func (a *app) claim(ctx context.Context, c *wire.Call, in *claiming) (any, error) {
	lease, err := leaseOf(in.DT)
	queue, notFor := queueOf(c, in.Queue)
	queue = cmp.Or(queue, class.DefaultQueue)
	if err = errors.Join(err, notFor, task.CheckLabel("queue", queue)); err != nil {
		return nil, err
	}
	s := a.store
	finishing, finish := conn.Finish(ctx)
	defer finish()
	got, err := claimSound(finishing, s, redisstate.ClaimParams{
		Worker: workerOf(c), Most: 1, Lease: min(lease, firstLease),
		Offer: &class.Offer{Queues: []class.QueueShare{{Queue: queue}}, Handlers: []string{program}},
	})
	if err != nil || len(got) == 0 {
		return claimed{}, err
	}
	undo := func() { release(s, workerOf(c), got[0]) }
	t, err := hold(ctx, s, got[0], lease)
	if err != nil {
		undo()
		return nil, err
	}
	c.Undo = undo
	return claimed{t}, nil
}

// claimSound claims tasks that can be run. It reports the others: they have failed.
func claimSound(ctx context.Context, s *redisstate.Store, r redisstate.ClaimParams) ([]redisstate.Claim, error) {
	for {
		got, err := s.Claim(ctx, r)
		if err != nil {
			return nil, err
		}
		sound, failed := broker.Sound(got.Claims)
		if len(failed) == 0 {
			return sound, nil
		}
		if _, err := s.Execute(ctx, r.Worker, failed...); err != nil {
			return nil, err
		}
	}
}

// hold makes a new claim hold for its whole time, and returns its task.
func hold(ctx context.Context, s *redisstate.Store, x redisstate.Claim, lease task.Seconds) (*wireTask, error) {
	if lease > firstLease {
		renewed, err := s.Renew(ctx, lease, redisstate.LeaseRenewal{
			ID: x.Task.ID, Round: x.Task.Round, Claim: x.ID,
		})
		if err = cmp.Or(err, errors.Join(renewed.Lost...)); err != nil {
			return nil, err
		}
	}
	stored, err := s.ReadOne(ctx, x.Task.ID, facts(mostClaims))
	if err != nil {
		return nil, err
	}
	t, err := whole(ctx, s, stored.Task)
	return &t, err
}

// release takes back a claim that no client has got.
func release(s *redisstate.Store, worker string, x redisstate.Claim) {
	ctx, cancel := context.WithTimeout(context.Background(), undoTime)
	defer cancel()
	// If this fails, the claim ends by itself.
	_ = broker.Undo(ctx, s, worker, "its client has gone before it got the task", x)
}

// A holding names a claim of a task.
type holding struct {
	Task  string `json:"task"`
	Claim *int   `json:"claim"`
}

// round returns the task and the round of the claim. Only its own token, or an operator, may use a claim: for others,
// the error does not even say whether there is such a task.
func (a *app) round(ctx context.Context, c *wire.Call, h *holding) (*task.Task, *task.Round, error) {
	if h.Claim == nil || *h.Claim < 0 {
		return nil, nil, wire.Invalid("claim: want the index of the claim in the task's list of claims, from 0")
	}
	t, err := find(ctx, a.store, h.Task, "", mostClaims)
	if err != nil && !errors.Is(err, task.ErrNoTask) {
		return nil, nil, err
	}
	if err == nil && *h.Claim <= t.Round {
		r := t.Rounds.At(*h.Claim)
		if r.Claim != "" && (r.Worker == workerOf(c) || c.Token.Role.Rights().Operate) {
			return t, r, nil
		}
	}
	return nil, nil, fmt.Errorf("claim %d of task %s: %w", *h.Claim, h.Task, errNoClaim)
}

var (
	errNoClaim = task.NewError(task.CodeNotFound, "the token has no such claim")
	errLost    = task.NewError(task.CodeConflict, "the claim does not hold any more; drop the task")
)

// holds reports whether the task still runs with the claim.
func (h *holding) holds(t *task.Task) bool { return t.State == task.Running && t.Round == *h.Claim }

type renewing struct {
	holding
	DT int64 `json:"dt"`
}

// renew makes a claim hold for a time from now. It never shortens a claim.
func (a *app) renew(ctx context.Context, c *wire.Call, in *renewing) (any, error) {
	lease, err := leaseOf(in.DT)
	if err != nil {
		return nil, err
	}
	t, r, err := a.round(ctx, c, &in.holding)
	if err == nil {
		err = a.extend(ctx, c, &in.holding, t, r, lease, redisstate.LiveReport{})
	}
	if err == nil {
		t, _, err = a.round(ctx, c, &in.holding)
	}
	if err != nil {
		return nil, err
	}
	now := claimOf(t, *in.Claim)
	return written{Claim: &now, W: copies}, nil
}

// extend renews the lease of a claim, unless it holds for longer, and reports updates.
func (a *app) extend(ctx context.Context, c *wire.Call, h *holding, t *task.Task, r *task.Round, lease task.Seconds,
	report redisstate.LiveReport,
) error {
	if !h.holds(t) {
		return errLost
	}
	renewed, err := a.store.Renew(ctx, lease, redisstate.LeaseRenewal{
		ID: t.ID, Round: t.Round, Claim: r.Claim,
		Report: report,
	})
	if err == nil && renewed.Lost[0] != nil {
		err = errLost
	}
	return err
}

type updating struct {
	holding
	Seq     *int            `json:"seq"`
	Message json.RawMessage `json:"message"`
}

// leastLease is what is left of a claim that has run out, and that nobody has ended yet.
const leastLease = task.Seconds(0.001)

// update adds a message to the log of a claim. Its number is that of the messages before it, so the log has no gaps. A
// call may be repeated.
func (a *app) update(ctx context.Context, c *wire.Call, in *updating) (any, error) {
	line := lineOf(in.Message)
	switch {
	case in.Seq == nil || *in.Seq < 0 || *in.Seq >= mostUpdates:
		return nil, wire.Invalid(fmt.Sprintf("seq: want the number of the update in its claim, from 0 to %d",
			mostUpdates-1))
	case in.Message == nil || len(line) > longestUpdate:
		return nil, wire.Invalid(fmt.Sprintf("message: want any JSON of at most %d bytes", longestUpdate))
	}
	t, r, err := a.round(ctx, c, &in.holding)
	if err != nil {
		return nil, err
	}
	known, err := updatesOf(ctx, a.store, t.ID, *in.Claim)
	if err == nil && *in.Seq > len(known) {
		err = conflict("seq: the update before it is missing; the next one is %d", len(known))
	}
	if err == nil && *in.Seq == len(known) {
		err = a.extend(ctx, c, &in.holding, t, r, leastLease, redisstate.LiveReport{
			Updates:     []string{line},
			FirstUpdate: *in.Seq + 1,
		})
		if err == nil { // another call may have added another message
			known, err = updatesOf(ctx, a.store, t.ID, *in.Claim)
		}
	}
	if err == nil && (*in.Seq >= len(known) || known[*in.Seq] != line) {
		err = conflict("seq: the update %d has another message", *in.Seq)
	}
	return written{W: copies}, err
}

// updatesOf returns the lines of the updates of a claim.
func updatesOf(ctx context.Context, s *redisstate.Store, id int64, claim int) (lines []string, err error) {
	all, err := s.Updates.After(ctx, id, updates.Update{Round: claim}, mostUpdates)
	for _, u := range all {
		if u.Round == claim {
			lines = append(lines, u.Line)
		}
	}
	return lines, err
}

type completing struct {
	holding
	writing
	Seq     *int            `json:"seq"`     // the number of updates of the claim; not checked if it is missing
	Message json.RawMessage `json:"message"` // the result of the task
}

// complete ends a task with success. It may be repeated.
func (a *app) complete(ctx context.Context, c *wire.Call, in *completing) (any, error) {
	t, r, err := a.round(ctx, c, &in.holding)
	if err == nil && in.Message != nil {
		err = checkResult(in.Message)
	}
	if err == nil && in.Seq != nil {
		err = a.checkUpdates(ctx, c, in, t)
	}
	if err != nil {
		return nil, err
	}
	ctx, replicas, err := a.confirmed(ctx, in.writing)
	if err != nil {
		return nil, err
	}
	if in.holds(t) {
		if err := a.execute(ctx, c, in, t, r); err != nil {
			return nil, err
		}
	} else if r.Entered[task.Executed] == 0 {
		return nil, errLost
	}
	return written{W: nodes(replicas)}, nil
}

// checkResult returns an error if a message cannot be a result.
func checkResult(message json.RawMessage) error {
	if len(message) > maxResult {
		return wire.Invalid(fmt.Sprintf("message: want at most %d bytes", maxResult))
	}
	if err := rounddir.CheckJSON(message); err != nil {
		return wire.Invalid("message: " + err.Error())
	}
	return nil
}

func (a *app) checkUpdates(ctx context.Context, c *wire.Call, in *completing, t *task.Task) error {
	known, err := updatesOf(ctx, a.store, t.ID, *in.Claim)
	if err == nil && *in.Seq != len(known) {
		err = conflict("seq: the claim has %d updates", len(known))
	}
	return err
}

// execute reports the result of the round.
func (a *app) execute(ctx context.Context, c *wire.Call, in *completing, t *task.Task, r *task.Round) error {
	s := a.store
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	result := rules.Result{Exit: "0", InProcess: true, JSON: string(in.Message), Started: r.Entered[task.Running]}
	result.Seconds = max(now.Sub(result.Started), task.For(time.Microsecond))
	end := broker.Ending{Claim: r.Claim, Result: result}
	outcomes, err := s.Execute(ctx, workerOf(c), end.Move(t).Settled(t, result))
	if err == nil && outcomes[0].Err != nil {
		if err = outcomes[0].Err; errors.As(err, new(*rules.StateError)) {
			err = errLost
		}
	}
	return err
}

func conflict(format string, a ...any) error {
	return task.NewError(task.CodeConflict, fmt.Sprintf(format, a...))
}
