package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/lazy"
	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/web/dashboard"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// A call is one call of the API.
type call struct {
	http.ResponseWriter
	request *http.Request
	body    *clientBody
	account *pool.Account // of all that the call makes this process hold
	opener  *redisstate.Opener
	release func() // frees the place of the call; may be called several times
	id      string // correlation id
	token   access.Token
	manager *manager.Manager // writes the name of the token into the logs of tasks

	status int // 0 before the answer
	bytes  int64

	login *dashboard.Login // of a request of the dashboard; nil for a call with a token

	undo func() // takes back what the call has done, if the client cannot get the answer; or nil

	// later answers a call that must wait. It runs when the route's function has returned, and what that function
	// answers is dropped: the functions around a route would otherwise keep 8 KB of stack for each of thousands of
	// calls that wait.
	later func()
}

type callKey struct{}

// callOf returns the call that a context belongs to.
func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

func (c *call) rights() access.Rights { return c.token.Role.Rights() }

func (c *call) WriteHeader(status int) {
	if c.status != 0 || c.later != nil {
		return
	}
	c.status = status
	if c.token.Name == "" {
		c.release() // the answer is ready, and a client without a token keeps no place while it reads the answer
	}
	c.body.mustEndIn(lingerTime)
	c.ResponseWriter.WriteHeader(status)
}

func (c *call) Write(b []byte) (int, error) {
	if c.later != nil {
		return len(b), nil
	}
	if n := int64(len(b)); n > callBytes/2 { // the client may read them slowly
		if err := c.account.Take(n); err != nil {
			panic(&overdrawn{err}) // a writer may ignore an error, and the answer would look whole
		}
		defer c.account.Return(n)
	}
	c.WriteHeader(http.StatusOK)
	n, err := c.ResponseWriter.Write(b)
	c.bytes += int64(n)
	return n, err
}

// Unwrap lets [http.ResponseController] find the connection.
func (c *call) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// An overdrawn is the panic of a call whose answer has no memory.
type overdrawn struct{ error }

// writeTime is how long the client may take to read the answer, in addition to the time of the call.
const writeTime = time.Minute

// Bounds of clients that send slowly. Routes that read large bodies have their own.
const (
	bodyTime   = 10 * time.Second // for a body
	lingerTime = time.Second      // for the rest of a body that nobody reads, after which the connection ends
	maxEarly   = 16 << 10         // bytes of a body that is read before its call has a place
)

// maxProbes is how many calls of /readyz run at the same time, in places of their own.
const maxProbes = 100

// What the account of a call is charged for, besides its texts.
const (
	callBytes  = 64 << 10 // for each call: its header, and what works on it
	bodyCopies = 3        // of each byte of a body: buffers that grow, and the values
)

// A clientBody is the body of a call. The client must send it before a deadline, which ends with the body: it would
// otherwise end the call. Its bytes are charged to the account of the call as they arrive.
type clientBody struct {
	io.ReadCloser
	account *pool.Account
	control *http.ResponseController
	free    bool // there is nothing left, or the route sets the deadlines, and charges for what it holds
}

func newClientBody(w http.ResponseWriter, r *http.Request, account *pool.Account) *clientBody {
	b := &clientBody{r.Body, account, http.NewResponseController(w), r.ContentLength == 0}
	b.mustEndIn(bodyTime)
	return b
}

// mustEndIn sets the deadline for what is left of the body. The rest of a body that nobody reads delays the answer of
// HTTP/1.1, so it gets lingerTime.
func (b *clientBody) mustEndIn(d time.Duration) {
	if !b.free {
		_ = b.control.SetReadDeadline(time.Now().Add(d)) // an error means that there is no connection, as in tests
	}
}

func (b *clientBody) Read(to []byte) (int, error) {
	n, err := b.ReadCloser.Read(to)
	if b.free {
		return n, err
	}
	if err == io.EOF {
		b.free = true
		_ = b.control.SetReadDeadline(time.Time{}) // as above
	}
	if full := b.account.Take(bodyCopies * int64(n)); full != nil {
		return 0, full
	}
	return n, err
}

// ServeHTTP checks a call, passes it to its route, and logs it.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	c := &call{
		ResponseWriter: w, id: correlationID(r), account: &pool.Account{}, opener: &redisstate.Opener{},
		release: func() {},
	}
	c.body = newClientBody(w, r, c.account)
	setHeaders(w.Header(), c.id)
	if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
		// the call may also have had a Content-Length, which net/http hides; so no proxy may send another call after it
		w.Header().Set("Connection", "close")
	}
	ctx := redisstate.WithOpener(context.WithValue(r.Context(), callKey{}, c), c.opener)
	r = r.WithContext(pool.With(ctx, c.account))
	r.Body = c.body
	c.request = r
	defer func() {
		if fault := recover(); fault != nil {
			a.fault(c, fault)
		}
		a.Log.Info("call", "method", short(r.Method), "path", short(r.URL.Path), "status", c.status, "bytes", c.bytes,
			"seconds", time.Since(begun).Seconds(), "token", c.token.Name, "address", r.RemoteAddr, "correlation_id",
			c.id)
	}()
	// an error means that there is no connection, as in tests
	_ = http.NewResponseController(w).SetWriteDeadline(begun.Add(10*a.Timeout + writeTime))
	if err := a.check(r); err != nil {
		a.problemOf(r.Context(), err).write(c)
		return
	}
	defer func() {
		c.release()
		c.account.End()
	}()
	if err := a.enter(c, r); err != nil {
		a.problemOf(r.Context(), err).write(c)
		return
	}
	defer c.releaseUnlessSent(r.Context())
	a.admit(c, r)
}

// enter takes a place for a call. The calls by which others see whether the process works need none of the places that
// clients can fill, and a client without a token sends its body before it gets a place.
func (a *api) enter(c *call, r *http.Request) (err error) {
	places := a.places
	switch r.URL.Path {
	case "/healthz":
		return nil
	case "/readyz":
		places = a.probes
	case dashboard.Base + "/login", dashboard.Base + "/logout":
		body, err := io.ReadAll(http.MaxBytesReader(c.ResponseWriter, c.body, maxEarly))
		if err != nil {
			return bodyProblem(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	leave, err := places.Enter(a.clientOf(r))
	if err != nil {
		return err
	}
	c.release = leave
	return nil
}

// enterAs takes a place for the holder of the call's token, in place of that of its address, and begins the account of
// the call in the holder's name. Before, the call holds only its header.
func (a *api) enterAs(c *call) error {
	c.release()
	leave, err := a.places.Enter(c.token.Holder())
	if err != nil {
		return err
	}
	c.release = leave
	c.account.Begin(a.memory, c.token.Holder())
	return c.account.Take(callBytes)
}

// work does the work of a call when its body has been read. The context ends with the time of the call: each loop over
// tasks looks at it.
func (a *api) work(ctx context.Context, longest time.Duration, do func(context.Context) error) error {
	ctx, cancel := a.within(ctx, longest)
	defer cancel()
	if err := pool.Take(ctx, 0); err != nil {
		return err
	}
	return do(ctx)
}

// fault answers a call whose function has panicked.
func (a *api) fault(c *call, fault any) {
	var err error = refuse("failed", kindOf("failed").Text)
	if of, ok := fault.(*overdrawn); ok {
		err = of.error
	} else if fault != http.ErrAbortHandler {
		a.Log.Error("a call panicked", "correlation_id", c.id, "error", fmt.Sprint(fault), "stack",
			string(debug.Stack()))
	}
	if c.status != 0 || fault == http.ErrAbortHandler {
		panic(http.ErrAbortHandler) // the answer has begun; the client must notice that it is not whole
	}
	a.problemOf(c.request.Context(), err).write(c)
}

// admit finds the token of the call, and passes the call to its route.
func (a *api) admit(c *call, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/api/") || r.URL.Path == metricsPath {
		if err := a.authenticate(c, r); err != nil {
			a.problemOf(r.Context(), err).write(c)
			return
		}
	}
	a.mux.ServeHTTP(c, r)
	if later := c.later; later != nil {
		c.later, r.Body = nil, http.NoBody // nobody reads the copy of the body again
		later()
	}
}

func (a *api) authenticate(c *call, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), a.Timeout)
	defer cancel()
	find := a.tokenOf
	if r.URL.Path == metricsPath {
		find = a.readerOf
	}
	token, err := find(ctx, r)
	switch {
	case err == access.ErrDenied:
		return refuse(unauthorized, err.Error())
	case err != nil:
		return err
	}
	return a.actAs(c, token)
}

// actAs makes a call one of the holder of a token.
func (a *api) actAs(c *call, t access.Token) error {
	c.token, c.manager, c.opener.Owner = t, a.managerOf(t.Holder()), t.Owner()
	return a.enterAs(c)
}

// tokenOf returns the token that the header Authorization has. Without this header, it returns the token whose name is
// the common name in the client's certificate. The server has checked that certificate (docs/http.md, "Certificates of
// clients").
func (a *api) tokenOf(ctx context.Context, r *http.Request) (access.Token, error) {
	given := r.Header.Values("Authorization")
	if len(given) == 0 && r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return a.admin.AuthenticateName(ctx, r.TLS.VerifiedChains[0][0].Subject.CommonName)
	}
	if len(given) == 1 {
		if scheme, text, _ := strings.Cut(given[0], " "); strings.EqualFold(scheme, "Bearer") {
			return a.admin.Authenticate(ctx, text)
		}
	}
	return access.Token{}, refuse(unauthorized, kindOf(unauthorized).Text)
}

// managerOf returns the manager that writes the name of a holder of a token into the logs of tasks. The calls of a
// holder share it, because it joins what they send.
func (a *api) managerOf(holder string) *manager.Manager {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.managers) >= 2*access.MaxTokens { // tokens come and go
		clear(a.managers)
	}
	if a.managers[holder] == nil {
		a.managers[holder] = a.manager.As(holder)
	}
	return a.managers[holder]
}

// check returns a problem if the call must not reach a route. It does not know the token yet.
func (a *api) check(r *http.Request) error {
	if !a.hasHost(r.Host) {
		return refuse(misdirected, fmt.Sprintf("unknown host %.100q; add it to hosts in section [http]", r.Host))
	}
	if origin := r.Header.Get("Origin"); origin != "" && !sameOrigin(origin, r.Host) {
		return refuse(otherOrigin, fmt.Sprintf("the origin %.100q may not call this server", origin))
	}
	if r.Method == http.MethodConnect || r.URL.EscapedPath() != cleanPath(r.URL.EscapedPath()) {
		return refuse("not_found", "no such path")
	}
	return nil
}

// hasHost reports whether the header Host names this server. A web page that has rebound its own name to the server's
// address cannot send such a header.
func (a *api) hasHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	_, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil || a.names[strings.ToLower(name)]
}

func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, host)
}

// cleanPath returns the path without . and .., and without empty parts.
func cleanPath(p string) string { return path.Clean("/" + p) }

var validID = lazy.Regexp(`^[A-Za-z0-9._:/+=@-]{1,128}$`)

// correlationID returns the id that the client gave to its call. If the client gave no valid id, it returns a new one.
func correlationID(r *http.Request) string {
	if id := r.Header.Get("X-Correlation-Id"); validID().MatchString(id) {
		return id
	}
	return rand.Text()
}

// setHeaders sets the headers of every answer. No browser shows an answer as a page with scripts, keeps it, or lets
// another page read it.
func setHeaders(h http.Header, id string) {
	h.Set("X-Correlation-Id", id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", contentPolicy())
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// short returns the beginning of a text for the log.
func short(text string) string { return text[:min(len(text), 200)] }
