package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/resources"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A Remote serves one worker in this process.
type Remote struct {
	*client
	lease   task.Seconds
	start   string // the Idempotency-Key of its registrations
	session string // the first part of its paths; "" before the registration
	lost    int    // tasks of an earlier start

	// for claims, of which only one at a time is under way
	number int64
	polled time.Time // when the last claim that waited began
}

// New returns a Remote for a worker whose name and claims hold for the lease. It sleeps between two attempts of a call.
// An invalid configuration is a *[config.Error].
func New(cfg config.API, lease task.Seconds, log *slog.Logger, sleep func(context.Context, time.Duration)) (*Remote,
	error,
) {
	c, err := newClient(cfg, log, sleep)
	if err != nil {
		return nil, err
	}
	return &Remote{client: c, lease: lease, start: rand.Text()}, nil
}

// Close closes the idle connections.
func (r *Remote) Close() { r.http.CloseIdleConnections() }

// A takenError means that another worker has the name.
type takenError struct{ error }

// NameTaken makes it a broker.NameTaken.
func (takenError) NameTaken() {}

func (e takenError) Unwrap() error { return e.error }

// TakeName registers the worker. If another worker has the name, TakeName waits for the length of a lease, because that
// worker may have been killed. After an outage of Redis, it waits until the grace period has ended.
func (r *Remote) TakeName(ctx context.Context, w presence.WorkerInfo, o broker.Takeover) (drained string, err error) {
	for waited, step := time.Duration(0), min(r.lease.Std()/4, time.Second); ; waited += step {
		got, err := r.register(ctx, &w)
		if err == nil {
			r.session, r.lost = pathOf(&got), got.Lost
		}
		if !hasStatus(err, http.StatusConflict) {
			return got.Drained, err
		}
		if waited > r.lease.Std()+step && !asksToWait(err) {
			return "", takenError{err}
		}
		if waited == 0 {
			o.Log.Warn("the name belongs to another worker: waiting in case that worker is gone", "error", err)
		}
		o.Sleep(ctx, step)
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
	}
}

// work is the path of registrations.
const work = "/work"

// pathOf returns the first part of the paths of a session's calls.
func pathOf(r *broker.Registered) string { return work + "/" + url.PathEscape(r.Session) }

// register registers the worker. With the same token and key, each call returns the same session.
func (r *Remote) register(ctx context.Context, w *presence.WorkerInfo) (got broker.Registered, err error) {
	body := struct {
		broker.Registration
		Programs []string `json:"programs,omitzero"` // an empty list is not the same as none
	}{broker.Registration{
		Name: w.Name, Host: w.Host, PID: w.PID, Slots: w.Slots, Tags: w.Offer.Tags, Campaign: w.Offer.Group,
		Sources: w.Offer.Programs, Lease: float64(r.lease), Resources: w.Offer.Resources.String(),
	}, nil}
	if !w.Offer.Anything {
		body.Programs = append([]string{}, w.Offer.Handlers...)
	}
	for _, q := range w.Offer.Queues {
		body.Queues = append(body.Queues, q.String())
	}
	err = r.call(ctx, &request{
		method: http.MethodPost, path: work, key: r.start, body: body, answer: &got, longest: bulkTime,
	})
	return got, err
}

// GiveUp returns the number of tasks of an earlier worker of this name that were lost with the registration.
func (r *Remote) GiveUp(context.Context) (int, error) { return r.lost, nil }

// WorkerHeartbeat says that the worker is alive, or signs it off. If the server does not know the session any more, the
// worker registers again with the same key: if its name is free, it has it again.
func (r *Remote) WorkerHeartbeat(ctx context.Context, w presence.WorkerInfo) (drained string, err error) {
	if w.State == presence.WorkerGone {
		err = r.call(ctx, &request{method: http.MethodDelete, path: r.session, longest: answerTime})
		if hasStatus(err, http.StatusNotFound, http.StatusGone) {
			err = nil
		}
		return "", err
	}
	var got broker.Beat
	var free class.Amounts
	for _, a := range w.Offer.Resources {
		free = append(free, class.Amount{Name: a.Name, Units: a.Units - w.Used.Of(a.Name)})
	}
	body := struct {
		Runs []int64           `json:"runs"`
		Free []resources.Stock `json:"free,omitempty"`
	}{append([]int64{}, w.Runs...), resources.StocksOf(class.CapacitiesOf(free))}
	err = r.call(ctx, &request{
		method: http.MethodPost, path: r.session + "/heartbeat", body: body, answer: &got, longest: answerTime,
	})
	if hasStatus(err, http.StatusNotFound, http.StatusGone) {
		r.log.Warn("the API does not know the worker any more: registering again", "error", err)
		return r.registerAgain(ctx, &w)
	}
	if hasStatus(err, http.StatusConflict) {
		err = takenError{err}
	}
	return got.Drained, err
}

// errOtherToken means that the name of the token has changed, and so has that of the worker.
var errOtherToken = errors.New("the token of another name has replaced that of this worker")

func (r *Remote) registerAgain(ctx context.Context, w *presence.WorkerInfo) (drained string, err error) {
	got, err := r.register(ctx, w)
	switch {
	case hasStatus(err, http.StatusConflict):
		err = takenError{err}
	case err == nil && pathOf(&got) != r.session:
		err = takenError{errOtherToken}
	}
	return got.Drained, err
}

// Gone returns none of the names, because the API does not tell a worker about others.
func (r *Remote) Gone(context.Context, []string) ([]string, error) { return nil, nil }
