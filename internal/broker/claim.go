package broker

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/lazy"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/resources"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

const (
	mostClaims  = 100
	longestWait = 60 * time.Second
	longestTime = 10 * 365 * 24 * time.Hour
	mostTexts   = 32 << 20 // bytes of checkpoints and errors in one answer

	keptPause = 2 * time.Second       // between two claims of a worker that is kept for a task
	morePause = 50 * time.Millisecond // before a claim goes on, if Redis had no time to look at all due tasks
)

// A ClaimRequest asks for tasks.
type ClaimRequest struct {
	Most     int     `json:"most,omitempty" doc:"the largest number of tasks, up to 100; 1 if it is missing, unless the claim prefetches tasks"`
	Prefetch int     `json:"prefetch,omitempty" doc:"the largest number of further tasks, which you start later; together with most, up to 100"`
	Wait     float64 `json:"wait,omitempty" doc:"seconds to wait for a task if there is none, up to 60, and up to two thirds of the lease"`
	Number   int64   `json:"number,omitempty" doc:"the number of the claim, from 1 up; if you get no answer, repeat the call with the same number, and you get the same tasks"`
	// TimeLeft is like [redisstate.ClaimParams.TimeLeft], in seconds.
	TimeLeft float64 `json:"time_left,omitempty" doc:"seconds for which your programs may still run; you get no task with a longer min_time; without it, they have no limit"`

	Free []resources.Stock `json:"free,omitempty" doc:"for a worker with resources: what is free, which is what the registration returned without what the running tasks have taken"`

	Base64 bool `json:"base64,omitempty" doc:"texts are always in the members that end in _base64"`

	Queues []class.QueueShare `json:"-"` // if there are any, instead of the queues of the worker's registration

	Require []Required `json:"require,omitempty" doc:"tasks that must not have changed; if one of them has, the call gets no task, and the problem names all that have"`
}

// A Required is a version of a task.
type Required struct {
	ID   int64  `json:"id"`
	ETag string `json:"etag" doc:"the ETag of the task"`
}

// etagForm is the form of an ETag, as package web writes it: state, round and revision.
var etagForm = lazy.Regexp(`^"([a-z_]+)-(\d{1,9})-(\d{1,15})"$`)

func (r *ClaimRequest) required(t *access.Token) (all []redisstate.TaskVersion, err error) {
	if len(r.Require) > 0 && t.Owner() != "" { // the answer would say how tasks of others are
		return nil, &access.ForbiddenError{Reason: "require: the token " + t.Name + " may not see tasks"}
	}
	if len(r.Require) > redisstate.MaxRequired {
		return nil, invalid("require: want at most %d tasks", redisstate.MaxRequired)
	}
	for _, v := range r.Require {
		parts := etagForm().FindStringSubmatch(v.ETag)
		if v.ID < 1 || parts == nil {
			return nil, invalid("require: task %d: %.100q is no ETag of a task", v.ID, v.ETag)
		}
		round, _ := strconv.Atoi(parts[2])
		revision, _ := strconv.Atoi(parts[3])
		all = append(all, redisstate.TaskVersion{
			ID: v.ID, State: task.State(parts[1]), Round: round, Revision: revision,
		})
	}
	return all, nil
}

// A Claimed is the answer to a claim.
type Claimed struct {
	Tasks   []ClaimedTask `json:"tasks" doc:"the tasks to run; empty if there is none"`
	Now     time.Time     `json:"now,omitzero" doc:"the time by Redis's clock, to which all other times belong"`
	Lease   float64       `json:"lease" doc:"seconds; renew each claim whenever a third of this time has passed"`
	Drained string        `json:"drained,omitempty" doc:"who has drained the worker; it gets no tasks until it is resumed"`
	Reports []Reported    `json:"reports,omitempty" doc:"an answer to each report, in the same order"`
}

// A ClaimedTask is a task to run. A text that is not UTF-8 is only in the member that ends in _base64.
type ClaimedTask struct {
	ID         int64  `json:"id"`
	Round      int    `json:"round"`
	Claim      string `json:"claim" doc:"names this run of the task, together with id and round, in renewals and reports"`
	Prefetched bool   `json:"prefetched,omitempty" doc:"you may start the task later, or release it unstarted"`

	Program string `json:"program"`
	Source  string `json:"source,omitempty" doc:"where to get the program, if the task has a source"`

	Input       *string  `json:"input,omitempty"`
	InputBase64 []byte   `json:"input_base64,omitempty"`
	Args        []string `json:"args" doc:"the input, split into words as a POSIX shell does; empty for an input of any bytes, which is in input_base64"`

	Campaign   string  `json:"campaign,omitempty"`
	Meta       *string `json:"meta,omitempty"`
	MetaBase64 []byte  `json:"meta_base64,omitempty"`
	After      bool    `json:"after,omitempty" doc:"the task has waited for others, whose results you can read"`

	Blobs []string `json:"blobs,omitempty" doc:"what the task needs, as SHA256:BYTES or SHA256:BYTES:PATH; with a path, it is a file in the directory of the command"`

	Fetch []string `json:"fetch,omitempty" doc:"patterns of the files that the report must have if the program succeeds"`

	Resources string                 `json:"resources,omitempty" doc:"what the task asks for"`
	Share     *resources.RemoteShare `json:"share,omitempty" doc:"what it has of a worker with resources"`

	Deadline time.Time `json:"deadline,omitzero" doc:"when the task times out or expires; missing: never"`
	Seconds  *float64  `json:"seconds,omitempty" doc:"the time from now to the deadline"`

	Checkpoint       *string `json:"checkpoint,omitempty" doc:"the last checkpoint of an earlier round"`
	CheckpointBase64 []byte  `json:"checkpoint_base64,omitempty"`
	LastError        *string `json:"last_error,omitempty" doc:"the error of the round before this one"`
	LastErrorBase64  []byte  `json:"last_error_base64,omitempty"`
}

func (r *ClaimRequest) check() error {
	if r.Most == 0 && r.Prefetch == 0 {
		r.Most = 1
	}
	switch {
	case r.Most < 0 || r.Most > mostClaims:
		return invalid("most: want 1 to %d", mostClaims)
	case r.Prefetch < 0 || r.Prefetch > mostClaims-r.Most:
		return invalid("prefetch: want at least 0, and together with most at most %d", mostClaims)
	case !(r.Wait >= 0 && r.Wait <= longestWait.Seconds()):
		return invalid("wait: want 0 to %v seconds", longestWait.Seconds())
	case !(r.TimeLeft >= 0 && r.TimeLeft <= longestTime.Seconds()):
		return invalid("time_left: want 0 to %.0f seconds", longestTime.Seconds())
	case r.Number < 0 || r.Number > redisstate.MaxClaimNumber:
		return invalid("number: want 1 to %d", redisstate.MaxClaimNumber)
	}
	return nil
}

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
	if err == nil {
		request.Require, err = r.required(t)
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
		renewals[i] = redisstate.LeaseRenewal{ID: x.Task.ID, Round: x.Task.Round, Claim: x.ID, Until: x.Task.EndBefore}
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

func taskOf(x redisstate.Claim, now task.Time, base64 bool) ClaimedTask {
	t := x.Task
	out := ClaimedTask{
		ID: t.ID, Round: t.Round, Claim: x.ID, Prefetched: t.Current().Prefetched, Program: t.Program, Source: t.Source,
		Campaign: t.Group,
		After:    t.Links > 0, Resources: t.Resources, Args: []string{}, Fetch: t.Fetch, Blobs: t.Blobs,
	}
	out.Input, out.InputBase64 = text(t.Input, base64)
	out.Meta, out.MetaBase64 = text(t.Meta, base64)
	switch args, data, err := t.Arguments(); {
	case data != nil:
		out.Input, out.InputBase64 = nil, data
	case err == nil && utf8.ValidString(t.Input) && len(args) > 0:
		out.Args = args
	}
	if end := min(t.EndBefore, now.Add(t.Timeout)); end < task.Never {
		left := float64(end.Sub(now))
		out.Deadline, out.Seconds = end.Std(), &left
	}
	return out
}

// text returns a text as it is, or if that is impossible in JSON or not wanted, its bytes.
func text(s string, base64 bool) (*string, []byte) {
	switch {
	case s == "":
		return nil, nil
	case base64 || !utf8.ValidString(s):
		return nil, []byte(s)
	}
	return &s, nil
}
