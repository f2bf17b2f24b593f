package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
)

var (
	toSee, toChange, toOpen      = wire.ToSee, wire.ToChange, wire.ToOpen
	toInspect, toWork, toOperate = wire.ToInspect, wire.ToWork, wire.ToOperate
)

// A route is a method and a path of the API.
type route struct {
	method, path, id, summary string
	need                      wire.Need
	bulk                      bool // the call may take ten times as long, and its body may be as large as maxBulk
}

const (
	maxBody = 1 << 20
	maxBulk = 64 << 20
)

// bounds returns how long a call may take, and how many bytes its body may have.
func (a *api) bounds(bulk bool) (longest time.Duration, limit int64) {
	if bulk {
		return 10 * a.Timeout, maxBulk
	}
	return a.Timeout, maxBody
}

// base is the beginning of the paths of all routes.
const base = "/api/v1"

const jsonLines = "application/x-ndjson"

func (a *api) addRoutes() {
	a.huma = humago.New(a.mux, a.config())
	a.addTasks()
	a.addActions()
	a.addNamespace()
	a.addWork()
	a.addPrograms()
	a.addBlobs()
	a.addResults()
	a.addTransactions()
	a.addSweeps()
	a.addLines()
	a.addEvents()
}

// none is the input of a route without parameters, and the output of a route without an answer.
type none struct{}

// add adds a route. Its function gets a context that ends with the time of the call.
func add[I, O any](a *api, r route, do func(context.Context, *call, *I) (*O, error)) {
	addReading(a, r, jsonKinds, do)
}

var jsonKinds = []string{"application/json", jsonLines}

// addReading adds a route that reads bodies of these types.
func addReading[I, O any](a *api, r route, kinds []string, do func(context.Context, *call, *I) (*O, error)) {
	longest, _ := a.bounds(r.bulk)
	addLong(a, r, kinds, longest, longest, do)
}

// addWaiting adds a route whose calls wait for something to happen, in addition to the time of each call.
func addWaiting[I, O any](a *api, r route, wait time.Duration, do func(context.Context, *call, *I) (*O, error)) {
	addLong(a, r, jsonKinds, a.Timeout, wait+10*a.Timeout, do)
}

func addLong[I, O any](a *api, r route, kinds []string, toRead, longest time.Duration, do func(context.Context, *call,
	*I) (*O, error),
) {
	a.routes = append(a.routes, r)
	_, limit := a.bounds(r.bulk)
	body := bodyOf{limit, toRead, kinds, reflect.TypeFor[I]()}
	huma.Register(a.huma, huma.Operation{
		OperationID: r.id, DefaultStatus: statusOf[O](), Method: r.method, Path: base + r.path, Summary: r.summary,
		Description:      "Needs the right to " + r.need.Name + ".",
		Security:         []map[string][]string{{"token": {}}},
		MaxBodyBytes:     limit + 1, // readBody reads the body before, and refuses a longer one
		BodyReadTimeout:  -1,        // as before; the deadline would also end calls that take longer
		SkipValidateBody: true,      // the types of manager read their JSON, and know more than a schema
		Middlewares:      huma.Middlewares{a.authorize(r.need), a.readBody(body)},
	}, func(ctx context.Context, in *I) (out *O, err error) {
		err = a.work(ctx, longest, func(ctx context.Context) error {
			out, err = do(ctx, callOf(ctx), in)
			return err
		})
		if err != nil {
			return nil, a.problemOf(ctx, err)
		}
		return out, nil
	})
}

// readsItself marks a route that reads its body line by line.
const readsItself = "reads itself"

// statusOf returns the status of the answers of a type, or 0 for the usual one: 200, or 204 for an answer without a
// body.
func statusOf[O any]() int {
	if of, ok := any(new(O)).(interface{ status() int }); ok {
		return of.status()
	}
	return 0
}

// authorize lets a call pass whose token has a right.
func (a *api) authorize(n wire.Need) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		if a.mayPass(callOf(ctx.Context()), n) {
			next(ctx)
		}
	}
}

// mayPass reports whether the token of a call has a right. If it has not, it answers the call.
func (a *api) mayPass(c *call, n wire.Need) bool {
	err := c.lacks(n)
	if err != nil {
		a.problemOf(c.request.Context(), err).write(c)
	}
	return err == nil
}

// lacks returns an error if the token of the call does not have a right.
func (c *call) lacks(n wire.Need) error {
	if n.Met(c.rights()) {
		return nil
	}
	return refuse(string(task.CodeForbidden), fmt.Sprintf("the token %s has the role %s, which may not %s", c.token.Name,
		c.token.Role, n.Name))
}

// readBody reads the body of a call into memory, and refuses a body that is too large, too slow, or of an unknown type.
func (a *api) readBody(of bodyOf) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		if ctx.Operation().RequestBody == nil || ctx.Operation().Metadata[readsItself] != nil {
			next(ctx)
			return
		}
		body, err := of.read(w, r)
		if err != nil {
			a.problemOf(ctx.Context(), err).write(w)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next(ctx)
	}
}

func checkType(r *http.Request, kinds []string) error {
	given := r.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(given)
	if given == "" || err == nil && slices.Contains(kinds, kind) {
		return nil
	}
	return refuse(notRead, fmt.Sprintf("the Content-Type %.100q is not %s", given, strings.Join(kinds, " or ")))
}

func bodyProblem(err error) error {
	large, network := new(http.MaxBytesError), net.Error(nil)
	switch {
	case errors.As(err, new(*problem)), task.CodeOf(err) != task.CodeFailed && !errors.As(err, &network):
		return err
	case errors.As(err, &large):
		return refuse(tooLarge, fmt.Sprintf("the body has more than %d bytes", large.Limit))
	case errors.As(err, &network) && network.Timeout():
		return refuse(tooSlow, "the body took too long")
	}
	return refuse(malformed, "the body cannot be read")
}
