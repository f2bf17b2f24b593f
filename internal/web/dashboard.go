package web

import (
	"context"
	"encoding/json"
	"math"
	"net/http"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/web/dashboard"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/sweep"
)

// A panel is the host of the dashboard.
type panel struct{ *api }

// addDashboard adds the pages for people. They have sessions of their own, and their requests pass the same gate as
// calls.
func (a *api) addDashboard() {
	all := append([]*manager.Manager{a.manager}, a.Shards...)
	pages := dashboard.New(all, panel{a}, dashboard.Options{Users: a.Users, Public: a.Public, Timeout: a.Timeout})
	a.panel = pages
	a.mux.HandleFunc(dashboard.Base, pages.ServeHTTP)
	a.mux.HandleFunc(dashboard.Base+"/", pages.ServeHTTP)
	a.mux.HandleFunc("GET /{$}", http.RedirectHandler(dashboard.Base, http.StatusSeeOther).ServeHTTP)
}

// Act makes a request a call of the holder of a token, in a session.
func (p panel) Act(r *http.Request, t access.Token, login dashboard.Login) (*manager.Manager, error) {
	c := callOf(r.Context())
	c.login = &login
	err := p.actAs(c, t)
	return c.manager, err
}

// MayTry counts a try to log in.
func (p panel) MayTry(r *http.Request) error {
	wait := p.logins.take(p.clientOf(r), p.clock())
	if wait <= 0 {
		return nil
	}
	too := refuse(tooMany, "too many tries to log in; wait, as Retry-After says")
	too.retry = max(1, int(math.Ceil(wait.Seconds())))
	return too
}

// Problem returns how to tell the user about an error.
func (p panel) Problem(r *http.Request, err error) dashboard.Problem {
	of := p.problemOf(r.Context(), err)
	shown := dashboard.Problem{Status: of.Status, Title: of.Title, Detail: of.Detail, RetryInSeconds: of.retry}
	if kindOf(of.Code).hidden {
		shown.CorrelationID = of.CorrelationID
	}
	return shown
}

// Work does the work of a request.
func (p panel) Work(r *http.Request, do func(context.Context) error) error {
	longest, _ := p.bounds(r.Method == http.MethodPost)
	return p.work(r.Context(), longest, do)
}

// Stream makes the answer to a request a stream.
func (p panel) Stream(r *http.Request, kind string, write func(dashboard.Stream) error) error {
	return p.stream(callOf(r.Context()), kind, func(s *stream) error {
		err := write(part{s})
		if err != nil || s.ctx.Err() == nil {
			return err
		}
		return context.Cause(s.ctx)
	})
}

// A part is a stream as the dashboard sees it.
type part struct{ *stream }

func (p part) Send(text string) error { return p.send(text) }
func (p part) Done() <-chan struct{}  { return p.ctx.Done() }

// Watch signals changes of tasks.
func (p panel) Watch(ctx context.Context, about dashboard.Subject, signal chan<- struct{}) (leave func(), err error) {
	kinds := []string{stateEvents}
	if len(about.IDs) > 0 {
		kinds = append(kinds, progressEvents)
	}
	return p.events.join(ctx, &subscriber{
		ids: setOf(about.IDs), group: about.Group, owner: about.Owner,
		kinds: setOf(kinds), signal: signal,
	})
}

// ServeAPI serves a call of the API by a user of the dashboard. It has passed the gate, and only its right is left to
// check.
func (p panel) ServeAPI(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// OpenSweep opens the tasks of a sweep as the API does. If the browser goes away meanwhile, it goes on.
func (p panel) OpenSweep(r *http.Request, of dashboard.Sweep) (dashboard.Swept, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 10*p.Timeout)
	defer cancel()
	task, err := json.Marshal(of.Task)
	if err != nil {
		return dashboard.Swept{}, err
	}
	s, err := p.sweeper(ctx, callOf(r.Context()), &sweepInput{Task: string(task), Input: of.Input}, of.Rows)
	if err != nil {
		return dashboard.Swept{}, err
	}
	if s.preview = of.Preview; s.preview > 0 {
		walk := &sweep.Walk{Points: s.points}
		err := s.walk(ctx, walk, nil)
		return dashboard.Swept{Tasks: walk.Admitted, Repeated: walk.Repeated, Inputs: s.first}, err
	}
	done, err := s.run(ctx)
	return dashboard.Swept{Tasks: done.Opened, Repeated: done.Repeated}, err
}
