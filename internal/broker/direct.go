package broker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/blob"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A DirectStore has the calls to Redis that a [Direct] needs: those of a *redisstate.Store. They wait while Redis is
// away.
type DirectStore interface {
	common
	link
	Turn(ctx, claiming context.Context, r redisstate.ClaimParams, results ...rules.Move) (
		outcomes []redisstate.Outcome, c redisstate.ClaimResult, err, claimErr error)
	TakeName(ctx context.Context, w presence.WorkerInfo, before presence.PriorOwner) (drained string,
		since task.Time, err error)
	WorkerHeartbeat(ctx context.Context, w presence.WorkerInfo) (drained string, err error)
	Program(ctx context.Context, sha256 string) ([]byte, error)
	BlobPlace(ctx context.Context) (id, path string, err error)
	blob.Registry
}

// A Direct serves one worker in this process, which has a connection to Redis of its own.
type Direct struct {
	store DirectStore
	name  string
	offer class.Offer
	lease task.Seconds
	since task.Time   // when the worker took its name, by Redis's clock
	waker *conn.Waker // nil until the worker waits

	// Free returns what the worker has free. An idle worker takes only wake tokens of tasks that fit, because a token
	// wakes one worker. Nil means that the worker offers no resources.
	Free func() class.Capacities

	mu    sync.Mutex
	turns class.Turns
}

// NewDirect returns a Direct for a worker, whose claims have this lease. The worker must call Close in the end.
func NewDirect(s DirectStore, name string, offer class.Offer, lease task.Seconds) *Direct {
	return &Direct{store: s, name: name, offer: offer, lease: lease}
}

// WorkerHeartbeat sends a heartbeat of the worker.
func (d *Direct) WorkerHeartbeat(ctx context.Context, w presence.WorkerInfo) (drained string, err error) {
	return d.store.WorkerHeartbeat(ctx, w)
}

// Close frees what the Direct needs to wait for tasks.
func (d *Direct) Close() {
	if d.waker != nil {
		_ = d.waker.Close() // it has nothing left to lose
	}
}

// complete sets what all claims of this worker have: its name, its lease, and its queues in the order in which this
// claim serves them.
func (d *Direct) complete(r *redisstate.ClaimParams) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.offer
	o.Queues = d.turns.Order(o.Queues)
	r.Worker, r.Lease, r.Offer = d.name, d.lease, &o
}

// record counts the tasks that a claim took from each queue.
func (d *Direct) record(c *redisstate.ClaimResult) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turns.Record(d.offer.Queues, c.Queues, c.Taken)
}

// Confirms reports whether replicas must confirm reports.
func (d *Direct) Confirms(ctx context.Context) bool { return d.store.Confirms(ctx) }

// Await waits until there may be a task for the worker, at most for a time, or until ctx ends. It reports whether there
// may be one, and claims none. Only one goroutine at a time may wait.
func (d *Direct) Await(ctx, _ context.Context, _ redisstate.ClaimParams, longest time.Duration) (woken bool,
	none redisstate.ClaimResult, err error,
) {
	if d.waker == nil {
		d.waker = d.store.WakeWorker(&d.offer, d.Free)
	}
	return d.waker.Wait(ctx, longest), none, nil
}

// Renew extends the leases of claims, and stores the worker's reports about the rounds.
func (d *Direct) Renew(ctx context.Context, renewals ...redisstate.LeaseRenewal) (redisstate.RenewResult, error) {
	return d.store.Renew(ctx, d.lease, renewals...)
}

// Exchange reports how rounds have ended, and claims tasks, if claim is not nil. Each report has an error of its own.
// The returned error is the claim's. Without a claim, it says that some reports must be sent again.
//
// Results and the claim travel in one call. If Redis refuses this call, the results must be sent again without a claim,
// because the claimed tasks must not wait for further calls. When the context claiming ends, Exchange gives up waiting
// for the answer to the claim.
func (d *Direct) Exchange(ctx, claiming context.Context, claim *redisstate.ClaimParams, all ...*Delivery) (
	c redisstate.ClaimResult, err error,
) {
	var results, others []*Delivery
	w := newWitness(ctx, d.store, d.name)
	for _, x := range all {
		if x.Way == Unfit {
			x.seeUnfit(ctx, w)
		}
		if x.Decide(); x.move.HasResult() && !x.OpensTasks() && !x.needsRead() {
			results = append(results, x)
		} else {
			others = append(others, x)
		}
	}
	ready, unread := d.ready(ctx, others)
	err = errors.Join(unread, applying(d.store, d.name).Deliver(ctx, ready))
	noteFailures(ctx, w, others...)
	if claim == nil {
		return c, errors.Join(err, reporting(d.store, d.name).Deliver(ctx, results))
	}
	return d.turn(ctx, claiming, *claim, results)
}

// turn reports results and claims tasks in one call.
func (d *Direct) turn(ctx, claiming context.Context, r redisstate.ClaimParams, results []*Delivery) (
	redisstate.ClaimResult, error,
) {
	d.complete(&r)
	ctx = conn.UntilConfirmed(ctx)
	outcomes, c, err, claimErr := d.store.Turn(ctx, claiming, r, movesOf(results)...)
	d.record(&c)
	for i, x := range results {
		if i < len(outcomes) {
			x.answer(ctx, outcomes[i].Err)
		} else {
			x.answer(ctx, err)
		}
	}
	return c, claimErr
}

// ready reads what decides about rounds that open tasks, failed or timed out, and returns the reports that can be sent.
// A claim does not read it, because few rounds need it. If the tasks cannot be read, rounds that open tasks must be
// reported again, because a result must not be stored without its tasks.
func (d *Direct) ready(ctx context.Context, all []*Delivery) (ready []*Delivery, err error) {
	var read []*Delivery
	var ids []int64
	var closed error // why rounds may open no tasks, or nil
	for _, x := range all {
		if !x.OpensTasks() && !x.needsRead() {
			ready = append(ready, x)
			continue
		}
		read, ids = append(read, x), append(ids, x.Task.ID)
	}
	if len(read) == 0 {
		return ready, nil
	}
	if slices.ContainsFunc(read, (*Delivery).OpensTasks) {
		closed = d.store.RoundsOpen(ctx)
	}
	stored, err := d.store.Read(ctx, ids, redisstate.Want{Fields: redisstate.Facts | redisstate.Rules})
	if err == nil && closed != redisstate.ErrRoundsOpenNothing {
		err = closed
	}
	for i, x := range read {
		switch {
		case err == nil && holds(stored[i].Task, x.Task):
			x.Task, x.read = stored[i].Task, true
			x.complete(closed)
		case x.OpensTasks():
			x.answer(ctx, cmp.Or[error](err, &rules.StateError{ID: x.Task.ID, Verb: rules.VerbExecute}))
			continue
		}
		ready = append(ready, x) // if its task is another's, Redis refuses the report
	}
	return ready, err
}

// holds reports whether a stored task still runs in the round of a claimed one.
func holds(stored, claimed *task.Task) bool {
	return stored != nil && stored.State == task.Running && stored.Round == claimed.Round
}

// Earlier returns what the earlier rounds of a claimed task have left: the checkpoint, and the error of the last round.
func (d *Direct) Earlier(ctx context.Context, t *task.Task) (checkpoint, lastError string, err error) {
	last := t.Round - 1
	stored, err := d.store.ReadOne(ctx, t.ID, redisstate.Want{Texts: redisstate.SameTexts(
		redisstate.TextsOf{Round: redisstate.OfTask, Texts: task.TextCheckpoint},
		redisstate.TextsOf{Round: last, Texts: task.TextError},
	)})
	if err != nil {
		return "", "", err
	}
	return stored.Task.Checkpoint, stored.Task.Rounds.At(last).Error, nil
}

// WriteDependencies writes what a claimed task has waited for (see [WriteDependencies]).
func (d *Direct) WriteDependencies(ctx context.Context, t *task.Task, to io.Writer) (unread, err error) {
	return WriteDependencies(ctx, d.store, t.ID, to)
}

// Blobs returns the store of the namespace's blobs, if this machine has their directory.
func (d *Direct) Blobs(ctx context.Context) (blob.Store, error) {
	id, path, err := d.store.BlobPlace(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := blob.FindDir(id, path)
	return blob.Direct{Dir: dir, Registry: d.store}, err
}

// Archive returns a program that a manager has stored in the namespace, and that a claimed task names. If there is
// none, the error is [fs.ErrNotExist].
func (d *Direct) Archive(ctx context.Context, _ *task.Task, sha256 string) (io.ReadCloser, error) {
	archive, err := d.store.Program(ctx, sha256)
	switch {
	case err != nil:
		return nil, err
	case archive == nil:
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(archive)), nil
}
