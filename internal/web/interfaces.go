package web

import (
	"context"
	"net/http"
	"path"

	"github.com/tdf-framework/tdf/internal/web/wire"
)

// addInterfaces adds the routes of other task systems. They are not in the document of the API.
func (a *api) addInterfaces() {
	for _, i := range a.Interfaces {
		for _, r := range i.Routes {
			a.mux.HandleFunc(r.Method+" "+path.Join(i.Prefix, r.Path), a.handlerOf(r))
		}
	}
}

func (a *api) handlerOf(r wire.Route) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		answer, err := a.callRoute(callOf(request.Context()), &r, w)
		if err != nil {
			p := a.problemOf(request.Context(), err)
			if p.Status == http.StatusUnprocessableEntity {
				p.Status = http.StatusBadRequest
			}
			p.write(w)
			return
		}
		if answer.Type != "" {
			w.Header().Set("Content-Type", answer.Type)
		}
		w.WriteHeader(answer.Status)
		_, _ = w.Write(answer.Body) // fails only if the client has gone
	}
}

// callRoute checks the token and the body of a call, and makes the call.
func (a *api) callRoute(c *call, r *wire.Route, w http.ResponseWriter) (answer *wire.Answer, err error) {
	if err := a.authenticate(c, c.request); err != nil {
		return nil, err
	}
	if err := c.lacks(r.Need); err != nil {
		return nil, err
	}
	longest, limit := a.bounds(r.Bulk)
	of := &wire.Call{Request: c.request, ID: c.id, Token: &c.token, Manager: c.manager}
	if c.request.Method != http.MethodGet && c.request.Method != http.MethodHead {
		types := r.Types
		if types == nil {
			types = jsonKinds[:1]
		}
		body := bodyOf{limit: limit, longest: longest, kinds: types}
		var err error
		if of.Body, err = body.read(w, c.request); err != nil {
			return nil, err
		}
	}
	err = a.work(c.request.Context(), longest, func(ctx context.Context) error {
		answer, err = r.Do(ctx, of)
		return err
	})
	c.undo = of.Undo
	return answer, err
}
