package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/task"
)

// streamWriteTime is how long the client may take to read a part of a stream, which is an answer that may go on for
// ever.
const streamWriteTime = 30 * time.Second

// checkPause is how often the token or the session of a stream is checked.
const checkPause = 5 * time.Second

// A stream is the answer to a call, written part by part. Streams have places of their own, so that they do not take
// the places of other calls.
type stream struct {
	*call
	ctx     context.Context // ends when the client goes away, when the server stops, and when the token is revoked
	control *http.ResponseController
}

// stream makes the answer to a call a stream, and calls write to write it. If there are too many streams, it returns an
// error. If write returns an error, and has written something before, the connection breaks off, so that the client
// notices that the answer is not whole.
func (a *api) stream(c *call, kind string, write func(*stream) error) error {
	release, err := a.streams.Enter(c.token.Holder())
	if err != nil {
		return err
	}
	c.release()
	c.release = release
	if err := c.account.Take(writeBuffer); err != nil {
		return err
	}
	if c.request.Method == http.MethodHead {
		return nil
	}
	ctx, stop := a.guard(c)
	defer stop()
	c.Header().Set("Content-Type", kind)
	s := &stream{c, ctx, http.NewResponseController(c.ResponseWriter)}
	err = write(s)
	switch {
	case err == nil:
		c.WriteHeader(http.StatusOK)
		return s.flush()
	case c.status == 0:
		c.Header().Del("Content-Type")
		return err
	case c.request.Context().Err() != nil: // the client has gone
		return nil
	case ctx.Err() == nil:
		a.Log.Warn("a stream broke off", "correlation_id", c.id, "error", err)
	}
	panic(http.ErrAbortHandler)
}

// Write writes a part of the answer.
func (s *stream) Write(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, context.Cause(s.ctx)
	}
	// an error means that there is no connection, as in tests
	_ = s.control.SetWriteDeadline(time.Now().Add(streamWriteTime))
	return s.call.Write(b)
}

// flush sends the client all that was written.
func (s *stream) flush() error {
	if err := s.control.Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// writeBuffer is the size of the parts of long answers.
const writeBuffer = 64 << 10

// Reasons why streams end.
var (
	errStopping = task.NewError(task.CodeUnavailable, "the server stops")
	errRevoked  = task.NewError(task.CodeForbidden, "the token or the session does not hold any more")
)

// guard returns a context that ends when the client goes away, when the server stops, and when the token of the call is
// revoked.
func (a *api) guard(c *call) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(c.request.Context())
	stopping := context.AfterFunc(a.stopping(c.request), func() { cancel(errStopping) })
	// the streams of all tokens share the roster
	key, holds := any(c), func(ctx context.Context) bool { return a.roster.has(ctx, a, &c.token) }
	if c.login != nil {
		key, holds = c.login.Key, func(ctx context.Context) bool {
			ctx, cancel := context.WithTimeout(ctx, a.Timeout)
			defer cancel()
			return c.login.Holds(ctx)
		}
	}
	leave := a.checks.enter(key, a.checkPause, holds, func() { cancel(errRevoked) })
	return ctx, func() {
		cancel(nil)
		stopping()
		leave()
	}
}

// stopping returns a context that ends when the server of a call begins to shut down. The server would otherwise wait
// for the streams.
func (a *api) stopping(r *http.Request) context.Context {
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok {
		return context.Background()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.servers[server] == nil {
		ctx, cancel := context.WithCancel(context.Background())
		server.RegisterOnShutdown(cancel)
		a.servers[server] = ctx
	}
	return a.servers[server]
}

// A roster is the list of all tokens. All streams share it, so that Redis is asked once for all of them.
type roster struct {
	mu     sync.Mutex
	read   time.Time // when the list was read
	now    time.Time // by Redis's clock
	tokens map[string]access.Token
}

// has reports whether a token is still valid. A token that is newer than the list makes it read the list again. While
// Redis does not answer, it returns true, because a stream then has nothing new to say.
func (r *roster) has(ctx context.Context, a *api, token *access.Token) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.read) >= a.checkPause || token.Created.After(r.now) {
		if err := r.refresh(ctx, a); err != nil {
			return true
		}
	}
	t, known := r.tokens[token.Name]
	return known && t.Same(token) && t.Holds(r.now)
}

func (r *roster) refresh(ctx context.Context, a *api) error {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	now, err := a.manager.Now(ctx) // before the list, so that a token which is missing there was created later
	if err != nil {
		return err
	}
	all, err := a.admin.Tokens(ctx)
	if err != nil {
		return err
	}
	r.tokens, r.now, r.read = map[string]access.Token{}, now, time.Now()
	for _, t := range all {
		r.tokens[t.Name] = t
	}
	return nil
}

// alsoAnswers adds a type of answer to the description of a route.
func (a *api) alsoAnswers(id string, kinds ...string) {
	for _, item := range a.huma.OpenAPI().Paths {
		for _, o := range []*huma.Operation{item.Get, item.Post, item.Put} {
			if o == nil || o.OperationID != id {
				continue
			}
			answer := o.Responses["200"]
			if answer.Content == nil {
				answer.Content = map[string]*huma.MediaType{}
			}
			for _, kind := range kinds {
				answer.Content[kind] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
			}
		}
	}
}

// wants reports whether the client accepts a type, and names it before JSON.
func (c *call) wants(kind string) bool {
	first, _, _ := strings.Cut(c.request.Header.Get("Accept"), ",")
	first, _, _ = strings.Cut(first, ";")
	return strings.EqualFold(strings.TrimSpace(first), kind)
}
