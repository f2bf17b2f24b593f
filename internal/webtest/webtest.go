// Package webtest has what the tests of the HTTP API, of its interfaces and of the dashboard share: tokens, calls and a
// server.
package webtest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/server"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
)

// AddToken adds a token to the namespace of a manager, and returns its text.
func AddToken(t testing.TB, m *manager.Manager, token access.Token) string {
	t.Helper()
	return expect.Result(admin.New(m).AddToken(t.Context(), token)).Value(t)
}

// Tokens adds a token for each role, with the name of the role, and returns their texts.
func Tokens(t testing.TB, m *manager.Manager) map[access.Role]string {
	t.Helper()
	all := map[access.Role]string{}
	for _, role := range access.Roles() {
		all[access.Role(role)] = AddToken(t, m, access.Token{Name: role, Role: access.Role(role)})
	}
	return all
}

// Call returns a call for a handler, with a token and headers as in [Set].
func Call(ctx context.Context, token, method, path, body string, headers ...string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Host = "localhost"
	return Set(r, token, headers...)
}

// Set adds a token to a call, unless the token is "", and headers such as "If-Match: x".
func Set(r *http.Request, token string, headers ...string) *http.Request {
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	return r
}

// Decode reads JSON.
func Decode[T any](t testing.TB, text string) (v T) {
	t.Helper()
	expect.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return v
}

// Deadlines serves with a handler. The deadlines that the handler sets for its connections do not pass before the test
// lets them.
type Deadlines struct {
	http.Handler
	Reads, Writes Passing
}

func (d *Deadlines) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.Handler.ServeHTTP(&deadlined{w, d}, r)
}

// Passing are the deadlines for bodies, or for answers.
type Passing struct {
	mu     sync.Mutex
	passed bool
	set    []func(time.Time) error
	left   []time.Duration
}

// Pass lets the deadlines pass, also those that the handler sets from now on.
func (p *Passing) Pass() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed = true
	for _, set := range p.set {
		_ = set(time.Now()) // fails if the connection has ended
	}
}

// Left returns, for each deadline so far, how much time was left when the handler set it.
func (p *Passing) Left() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.left)
}

func (p *Passing) add(t time.Time, set func(time.Time) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.IsZero() {
		return set(t)
	}
	p.set, p.left = append(p.set, set), append(p.left, time.Until(t))
	if p.passed {
		return set(time.Now())
	}
	return set(time.Time{})
}

// A deadlined is an answer whose deadlines the test has.
type deadlined struct {
	http.ResponseWriter
	of *Deadlines
}

// Unwrap lets [http.ResponseController] find the connection.
func (w *deadlined) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *deadlined) SetReadDeadline(t time.Time) error {
	return w.of.Reads.add(t, http.NewResponseController(w.ResponseWriter).SetReadDeadline)
}

func (w *deadlined) SetWriteDeadline(t time.Time) error {
	return w.of.Writes.add(t, http.NewResponseController(w.ResponseWriter).SetWriteDeadline)
}

// RunServer runs a server for the namespace of a configuration until the test ends.
func RunServer(t testing.TB, cfg config.Manager) {
	t.Helper()
	of := expect.Result(config.DefaultServer(cfg.Namespace)).Value(t)
	of.RoundDuration = 100 * time.Millisecond
	s := server.New("server", of, testspace.Connect(t, cfg), testspace.Silent)
	ctx, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		end()
		expect.NoError(t, <-done)
	})
}
