package taskmaster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// sessionKey makes all registrations of a worker the same session.
const sessionKey = "taskmaster"

// usualConcurrency is the default of maxConcurrency.
const usualConcurrency = 4

// A worker is the worker of a call.
type worker struct {
	token   *access.Token
	local   string // its name without the token
	name    string // in Redis: TOKEN/NAME
	session string
}

func (a *app) workerOf(c *wire.Call, id string) (worker, error) {
	if strings.TrimSpace(id) == "" {
		return worker{}, wire.Invalid("workerId is missing")
	}
	local := encodeName(id)
	if len(local) > mostName {
		return worker{}, wire.Invalid(fmt.Sprintf("workerId: %.100q is too long", id))
	}
	return worker{c.Token, local, c.Token.Name + "/" + local, broker.SessionFor(c.Token, local, sessionKey)}, nil
}

const (
	mostName = 100
	encoded  = "x-" // the beginning of names that contain a worker's id in base64
)

// encodeName returns the name of a worker. Most ids of workers are valid names.
func encodeName(id string) string {
	if !strings.HasPrefix(id, encoded) && broker.ValidName(id) {
		return id
	}
	return encoded + base64.RawURLEncoding.EncodeToString([]byte(id))
}

func decodeName(name string) string {
	if text, ok := strings.CutPrefix(name, encoded); ok {
		if id, err := base64.RawURLEncoding.DecodeString(text); err == nil {
			return string(id)
		}
	}
	return name
}

type registration struct {
	WorkerID       string   `json:"workerId"`
	QueueName      string   `json:"queueName"`
	MaxConcurrency *int     `json:"maxConcurrency"`
	Tags           []string `json:"tags"`
}

func (r *registration) check(t *access.Token) error {
	switch {
	case strings.TrimSpace(r.QueueName) == "":
		return wire.Invalid("queueName is missing")
	case orUsual(r.MaxConcurrency, usualConcurrency) < 1:
		return wire.Invalid("maxConcurrency: want at least 1")
	}
	if err := checkTags(r.Tags); err != nil {
		return err
	}
	if err := task.CheckLabel("queueName", r.QueueName); err != nil {
		return err
	}
	return t.CheckQueue(r.QueueName)
}

func (a *app) register(ctx context.Context, c *wire.Call) (*wire.Answer, error) {
	var in registration
	if err := c.Read(&in); err != nil {
		return nil, err
	}
	w, err := a.workerOf(c, in.WorkerID)
	if err == nil {
		err = in.check(c.Token)
	}
	if err == nil {
		err = a.signUp(ctx, w, &in)
	}
	if err == nil {
		_, _, err = a.beat(ctx, w) // also renews what it holds
	}
	if err != nil {
		return nil, err
	}
	return wire.Empty(http.StatusOK), nil
}

// signUp registers a worker, or changes its registration.
func (a *app) signUp(ctx context.Context, w worker, r *registration) error {
	_, err := a.broker.Register(ctx, w.token, sessionKey, broker.Registration{
		Name: w.local, Slots: orUsual(r.MaxConcurrency, usualConcurrency), Queues: []string{r.QueueName},
		Tags: encodeTags(r.Tags), Programs: []string{Program}, Lease: a.Dead.Seconds(),
	})
	if taken := new(presence.NameTakenError); errors.As(err, &taken) { // a worker of TDF has the name
		return task.NewError(task.CodeTaken, taken.Error())
	}
	if err == nil {
		a.store.Presence.CountRegistration(r.QueueName)
	}
	return err
}

// heartbeat answers a heartbeat. A worker that is unknown, or dead, must register again.
func (a *app) heartbeat(ctx context.Context, c *wire.Call) (*wire.Answer, error) {
	w, err := a.workerOf(c, c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	of, known, now, err := a.store.Presence.Worker(ctx, w.name)
	alive := known && a.stateOf(&of, now) != deadWorker
	if err == nil && alive {
		_, alive, err = a.beat(ctx, w)
	}
	switch {
	case err != nil:
		return nil, err
	case !alive:
		return nil, task.NewError(task.CodeNotFound, "no such worker is alive; register it")
	}
	return wire.Empty(http.StatusNoContent), nil
}

// keepNotes is how long Redis keeps which tasks a worker holds: longer than their leases.
func (a *app) keepNotes() task.Seconds { return 2 * task.For(a.Dead) }

// beat sends the heartbeat of a worker, and renews the leases of its tasks. It returns how many tasks the worker holds,
// and whether it is known.
func (a *app) beat(ctx context.Context, w worker) (held int, known bool, err error) {
	noted, err := a.store.Presence.Held(ctx, w.name)
	if err != nil {
		return 0, false, err
	}
	runs, ended := newest(noted)
	ids, renewals := slices.Sorted(maps.Keys(runs)), make([]broker.Renewal, len(runs))
	for i, id := range ids {
		renewals[i] = broker.Renewal{Run: broker.Run(runs[id])}
	}
	_, err = a.broker.Heartbeat(ctx, w.token, w.session, ids, nil)
	switch code := task.CodeOf(err); {
	case err != nil && (code == task.CodeNotFound || code == task.CodeExpired || code == task.CodeTaken):
		return 0, false, nil // unknown, or a worker of TDF has had the name
	case err != nil:
		return 0, false, err
	}
	for page := range slices.Chunk(renewals, mostHeld) {
		renewed, err := a.broker.Renew(ctx, w.token, w.session, page)
		if err != nil {
			return 0, true, err
		}
		for _, lost := range renewed.Lost {
			ended = append(ended, runs[lost.ID])
		}
	}
	if err := a.store.Presence.LetGo(ctx, w.name, ended...); err != nil {
		return 0, true, err
	}
	return len(noted) - len(ended), true, a.store.Presence.Hold(ctx, w.name, a.keepNotes())
}

// newest returns the newest run of each task, by the id of the task, and the others, which have ended.
func newest(all []presence.Run) (runs map[int64]presence.Run, ended []presence.Run) {
	runs = map[int64]presence.Run{}
	for _, r := range all {
		if before, twice := runs[r.ID]; twice {
			if before.Round > r.Round {
				before, r = r, before
			}
			ended = append(ended, before)
		}
		runs[r.ID] = r
	}
	return runs, ended
}

// The states of workers.
const (
	activeWorker = "ACTIVE"
	staleWorker  = "STALE"
	deadWorker   = "DEAD"
)

func (a *app) stateOf(w *presence.WorkerStatus, now task.Time) string {
	switch silent := now.Sub(w.Seen).Std(); {
	case silent > a.Dead || w.State == presence.WorkerGone:
		return deadWorker
	case silent > a.Stale:
		return staleWorker
	}
	return activeWorker
}

type workerView struct {
	WorkerID       string    `json:"workerId"`
	QueueName      string    `json:"queueName"`
	Status         string    `json:"status"`
	LastHeartbeat  time.Time `json:"lastHeartbeat"`
	MaxConcurrency int       `json:"maxConcurrency"`
	Tags           []string  `json:"tags"`
}

// workers lists the workers that can run the tasks of the interface.
func (a *app) workers(ctx context.Context, _ *wire.Call) (*wire.Answer, error) {
	all, now, err := a.known(ctx)
	if err != nil {
		return nil, err
	}
	views := []workerView{}
	for i := range all {
		w := &all[i]
		_, local, _ := strings.Cut(w.Name, "/")
		v := workerView{
			decodeName(local), w.Offer.Shares()[0].Queue, a.stateOf(w, now), w.Seen.Std(), w.Slots,
			decodeTags(w.Offer.Tags),
		}
		if local == "" {
			v.WorkerID = w.Name
		}
		views = append(views, v)
	}
	return wire.JSON(http.StatusOK, views)
}

// known returns the workers that have a handler for the tasks of the interface, and the time by Redis's clock.
func (a *app) known(ctx context.Context) ([]presence.WorkerStatus, task.Time, error) {
	all, err := a.store.Presence.Workers(ctx)
	if err != nil {
		return nil, 0, err
	}
	now, err := a.store.Now(ctx)
	return slices.DeleteFunc(all, func(w presence.WorkerStatus) bool { return !isOurs(&w) }), now, err
}

// isOurs reports whether a worker has a handler for the tasks of the interface.
func isOurs(w *presence.WorkerStatus) bool { return slices.Contains(w.Offer.Handlers, Program) }
