package broker

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/resources"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

const (
	mostTexts = 32 << 20 // bytes of checkpoints and errors in one answer

	keptPause = 2 * time.Second       // between two claims of a worker that is kept for a task
	morePause = 50 * time.Millisecond // before a claim goes on, if Redis had no time to look at all due tasks
)

// WaitHooks are the functions with which the caller of [Claiming.Wait] bounds how calls wait.
type WaitHooks struct {
	Begin func() error // called before a call waits, perhaps several times; an error ends the call
	// called when a call has waited; an error means that the worker may get no tasks any more
	Still func(context.Context) error
}

// A Claiming is a call of a worker that asks for tasks. What it needs while it waits is here and not in local
// variables, because thousands of calls wait at once: their stacks stay small.
type Claiming struct {
	Claimed // the answer

	// Undo releases the tasks, so that they need not wait for the end of the lease. It is nil if there are none. The
	// caller must call it if the worker cannot get the answer. If the worker repeats the call in the same moment, and
	// so gets the tasks that Undo releases, its next renewal says that they are lost.
	Undo func()

	// More means that Redis had no time to look at all due tasks.
	More bool

	// kept means that the worker is kept for a task that needs more than is free. Tokens are for other workers.
	kept bool

	// Waits reports whether there was no task yet. The caller must then call Wait.
	Waits bool

	broker   *Broker
	token    *access.Token
	session  string
	base64   bool
	request  redisstate.ClaimParams
	waitlist *waitlist
	pool     *resources.Pool // of a worker with resources, or nil
	lent     *resources.Loan
	until    time.Time
	ends     time.Time // when the worker's programs must end; zero if they need not
}

// Claim hands tasks to a worker, if there are any. A worker that waits needs no other heartbeats, because the call
// counts as one, and ends before the lease does.
func (b *Broker) Claim(ctx context.Context, t *access.Token, id string, r ClaimRequest) (*Claiming, error) {
	k := &Claiming{Claimed: Claimed{Tasks: []ClaimedTask{}}, broker: b, token: t, session: id}
	v, request, err := b.begin(ctx, t, id, &r)
	if err != nil {
		return nil, err
	}
	if k.pool, err = v.pool(r.Free); err != nil {
		return nil, err
	}
	if (k.pool == nil) != (v.Offer.Resources == nil) {
		return nil, invalid("free: a worker with resources must say what is free")
	}
	if k.pool != nil {
		k.lent = k.pool.Lend()
		request.Free, request.Whole = k.lent.Free(), class.CapacitiesOf(v.whole())
	}
	k.Lease, k.Drained, k.base64, k.request = float64(v.Lease), v.Drained, r.Base64, request
	k.waitlist = b.waitlist(t.Name, v.Offer, request.Free)
	if r.TimeLeft > 0 {
		k.ends = time.Now().Add(time.Duration(r.TimeLeft * float64(time.Second)))
	}
	k.until = time.Now().Add(min(time.Duration(r.Wait*float64(time.Second)), v.Lease.Std()*2/3))
	return k, k.attempt(ctx)
}

// attempt claims tasks, unless the worker is drained.
func (k *Claiming) attempt(ctx context.Context) error {
	if k.Drained == "" {
		if !k.ends.IsZero() {
			k.request.TimeLeft = task.For(max(time.Until(k.ends), time.Millisecond))
		}
		got, err := k.broker.claim(ctx, k.waitlist, k.request)
		if err == nil && len(got.Claims) > 0 {
			return k.deliver(ctx, &got)
		}
		if k.Now, k.More, k.kept = got.Now.Std(), got.More, got.Kept; err != nil {
			return err
		}
	}
	k.Waits = time.Now().Before(k.until)
	return gone(ctx)
}

// deliver makes the answer that hands the tasks to the worker.
func (k *Claiming) deliver(ctx context.Context, got *redisstate.ClaimResult) (err error) {
	k.Now, k.Waits = got.Now.Std(), false
	k.Undo = func() { k.broker.undo(ctx, k.request.Worker, got.Claims, "its worker has gone before it got the task") }
	if k.Tasks, err = k.broker.tasks(ctx, k.request.Worker, got, k.base64); err == nil {
		err = k.share(got.Claims)
	}
	if err == nil {
		err = gone(ctx)
	}
	if err != nil {
		k.Undo()
		k.Undo = nil
	}
	return err
}

// share gives each task its share of the resources. Redis has chosen the tasks so that they fit.
func (k *Claiming) share(claims []redisstate.Claim) error {
	for i := range claims {
		if k.pool == nil {
			return nil
		}
		s, fits := k.pool.Take(claims[i].Task.Request(), k.lent)
		if !fits {
			return fmt.Errorf("task %d does not fit into what its worker has free", claims[i].Task.ID)
		}
		k.Tasks[i].Share = s.Remote()
	}
	return nil
}

// Wait waits until the worker gets a task, or its time is over.
func (k *Claiming) Wait(ctx context.Context, w WaitHooks) error {
	over := time.NewTimer(time.Until(k.until))
	defer over.Stop()
	if k.pool != nil {
		k.broker.endWait(k.token, k.session, over)
		defer k.broker.endWait(k.token, k.session, nil)
	}
	for k.Waits {
		if err := w.Begin(); err != nil {
			return err
		}
		if !k.await(ctx, over.C) {
			return gone(ctx)
		}
		if err := k.reattempt(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// endWait ends the claim with which the worker of a session waits: it has reported a round, so more is free than the
// claim knows. over ends its next one.
func (b *Broker) endWait(t *access.Token, session string, over *time.Timer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	name := t.Name + "/" + session
	if earlier := b.waiting[name]; earlier != nil {
		earlier.Reset(0)
	}
	delete(b.waiting, name)
	if over != nil {
		b.waiting[name] = over
	}
}

// await waits until it makes sense to claim again, and reports whether it does. A drained worker waits until its time
// is over.
func (k *Claiming) await(ctx context.Context, over <-chan time.Time) bool {
	var again <-chan time.Time
	switch {
	case k.More:
		return conn.Sleep(ctx, morePause)
	case k.kept:
		again = time.After(keptPause)
	case k.Drained == "":
		return k.waitlist.wait(ctx, over)
	}
	select {
	case <-over:
	case <-ctx.Done():
	case <-again:
		return true
	}
	return false
}

// reattempt claims for a worker whose turn it is, unless it may get no tasks any more. Then it is the turn of another
// worker.
func (k *Claiming) reattempt(ctx context.Context, w WaitHooks) error {
	err := w.Still(ctx)
	if err == nil {
		err = k.checkWorker(ctx)
	}
	if err != nil || k.Drained != "" {
		k.waitlist.wakeNext()
	}
	if err != nil {
		return err
	}
	return k.attempt(ctx)
}

// checkWorker reads whether the worker is drained, or has lost its name.
func (k *Claiming) checkWorker(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, k.broker.o.Answer)
	defer cancel()
	v, err := k.broker.visit(ctx, k.token, k.session)
	k.Drained = v.Drained
	return err
}

// begin reads the worker, and makes the request to Redis.
func (b *Broker) begin(ctx context.Context, t *access.Token, id string, r *ClaimRequest) (v visit,
	request redisstate.ClaimParams, err error,
) {
	ctx, cancel := context.WithTimeout(ctx, b.o.Answer)
	defer cancel()
	if v, err = b.visit(ctx, t, id); err == nil {
		err = r.check()
	}
	if err == nil {
		err = b.beatIfDue(ctx, &v)
	}
	if err == nil && len(r.Queues) > 0 {
		v.Offer.Queues = r.Queues
		err = checkQueues(&v.Offer, t)
	}
	request = redisstate.ClaimParams{
		Worker: v.worker, Most: r.Most, Prefetch: r.Prefetch, Lease: v.Lease, IDs: v.claimIDs(rand.Text()),
	}
	if err == nil && r.Number > 0 {
		request.IDs = v.claimIDs(strconv.FormatInt(r.Number, 10))
		request.Call, err = b.store.ClaimCall(ctx, v.boot, r.Number)
	}
	return v, request, err
}

// gone returns an error if the worker has gone.
func gone(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// claim claims tasks, and returns those that can be run. It reports the others: they have failed. If the worker goes,
// claim waits a little for the answer, since the tasks in an unread answer would be lost.
func (b *Broker) claim(ctx context.Context, l *waitlist, r redisstate.ClaimParams) (c redisstate.ClaimResult,
	err error,
) {
	ctx, cancel := context.WithTimeout(ctx, b.o.Answer)
	defer cancel()
	ctx, finish := conn.Finish(ctx)
	defer finish()
	r.Offer = l.inTurn()
	if c, err = b.store.Claim(ctx, r); err != nil {
		return c, err
	}
	l.learn(&c)
	sound, failed := Sound(c.Claims)
	if len(failed) > 0 {
		_, err = b.store.Execute(ctx, r.Worker, failed...)
		c.More = c.More || len(sound) == 0
	}
	if err != nil { // nobody will run the others
		b.undo(ctx, r.Worker, sound, "its worker got an error")
	}
	c.Claims = sound
	if err == nil && r.Call != nil && r.Call.Repeated {
		err = b.renewAgain(ctx, r.Lease, &c)
	}
	return c, err
}

// renewAgain renews the claims that a repeated call has got, because their leases have begun with the first call. It
// drops those that are lost.
func (b *Broker) renewAgain(ctx context.Context, lease task.Seconds, c *redisstate.ClaimResult) error {
	renewals := make([]redisstate.LeaseRenewal, len(c.Claims))
	for i, x := range c.Claims {
		renewals[i] = redisstate.LeaseRenewal{ID: x.Task.ID, Round: x.Task.Round, Claim: x.ID}
	}
	renewed, err := b.store.Renew(ctx, lease, renewals...)
	var held []redisstate.Claim
	for i, x := range c.Claims {
		if err == nil && renewed.Lost[i] == nil {
			held = append(held, x)
		}
	}
	c.Claims = held
	return err
}

// undo releases tasks that no worker has got.
func (b *Broker) undo(ctx context.Context, worker string, claims []redisstate.Claim, why string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.o.Answer)
	defer cancel()
	if err := Undo(ctx, b.store, worker, why, claims...); err != nil {
		b.o.Log.Warn("tasks that no worker has got could not be released; they are lost when their leases end",
			"worker", worker, "tasks", len(claims), "error", err)
	}
}

// tasks returns what the worker needs of claimed tasks. It releases the tasks whose texts of earlier rounds do not fit
// into one answer.
func (b *Broker) tasks(ctx context.Context, worker string, c *redisstate.ClaimResult, base64 bool) ([]ClaimedTask,
	error,
) {
	earlier, err := b.earlier(ctx, c.Claims)
	if err != nil {
		return nil, err
	}
	var all []ClaimedTask
	var kept, left []redisstate.Claim
	for _, x := range c.Claims {
		t, read := earlier[x.Task.ID]
		if x.Task.Round > 0 && !read {
			left = append(left, x)
			continue
		}
		out := taskOf(x, c.Now, base64)
		if t != nil {
			out.Checkpoint, out.CheckpointBase64 = text(t.Checkpoint, base64)
			out.LastError, out.LastErrorBase64 = text(t.Rounds.At(x.Task.Round-1).Error, base64)
		}
		all, kept = append(all, out), append(kept, x)
	}
	if c.Claims = kept; len(left) > 0 {
		b.undo(ctx, worker, left, "the checkpoints do not fit into one answer")
	}
	return all, nil
}

// earlier reads what earlier rounds have left for the first tasks: for as many of them as fit into one answer.
func (b *Broker) earlier(ctx context.Context, claims []redisstate.Claim) (map[int64]*task.Task, error) {
	var ids []int64
	for _, x := range claims {
		if x.Task.Round > 0 {
			ids = append(ids, x.Task.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, b.o.Answer)
	defer cancel()
	stored, err := b.store.Read(ctx, ids, redisstate.Want{
		Fields: redisstate.Head, MaxBytes: mostTexts,
		Texts: func(t *task.Task) []redisstate.TextsOf {
			return []redisstate.TextsOf{
				{Round: redisstate.OfTask, Texts: task.TextCheckpoint},
				{Round: max(t.Round-1, 0), Texts: task.TextError},
			}
		},
	})
	found := map[int64]*task.Task{}
	for _, x := range stored {
		found[x.ID] = x.Task
	}
	return found, err
}
