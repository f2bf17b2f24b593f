package apiserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/manager"
)

func TestMain(m *testing.M) {
	callTime = time.Hour
	os.Exit(leaktest.M{M: m}.Run())
}

// newManager returns a manager for a test that runs in parallel with others.
func newManager(t *testing.T) *manager.Manager {
	t.Helper()
	t.Parallel()
	return serialManager(t)
}

func serialManager(t testing.TB) *manager.Manager {
	t.Helper()
	return testspace.Manager(t, testspace.Config(t, redistest.Shared(t)))
}

// usual returns the defaults of [http], with a free port of the loopback interface.
func usual(t testing.TB) config.HTTP {
	t.Helper()
	cfg := expect.Result(config.LoadTool("", nil)).Value(t).HTTP
	cfg.Listen = "127.0.0.1:0"
	return cfg
}

// run opens and runs a server, which change may alter before, and returns it. It ends with the test. Its connections may be slow.
func run(t testing.TB, cfg config.HTTP, m *manager.Manager, change func(*Server)) *Server {
	t.Helper()
	s := expect.Result(Open(t.Context(), cfg, []*manager.Manager{m}, testspace.Silent)).Value(t)
	s.server.ReadHeaderTimeout, s.server.IdleTimeout, s.server.HTTP2.SendPingTimeout = time.Hour, time.Hour, time.Hour
	if change != nil {
		change(s)
	}
	ctx, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		end()
		expect.NoError(t, <-done)
	})
	return s
}

// A caller makes calls over TLS. Its connections end with the test.
func caller(t testing.TB, security *tls.Config, http2 bool) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: security, ForceAttemptHTTP2: http2}
	if !http2 {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// call returns the status of a call and the major version of its protocol. An error of the connection has the status 0.
func call(t testing.TB, c *http.Client, url, token string) (status, protocol int) {
	t.Helper()
	r := expect.Result(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)).Value(t)
	answer, err := c.Do(webtest.Set(r, token))
	if err != nil {
		return 0, 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, answer.ProtoMajor
}

func statusOf(t testing.TB, c *http.Client, url, token string) int {
	t.Helper()
	status, _ := call(t, c, url, token)
	return status
}

// On an address that other machines can reach, the API needs clients that can log in.
func TestOpenNeedsLogins(t *testing.T) {
	m := newManager(t)
	cfg := usual(t)
	cfg.Listen, cfg.Insecure = "0.0.0.0:0", true
	_, err := Open(t.Context(), cfg, []*manager.Manager{m}, testspace.Silent)
	expect.Fails(t, err, "[http] listen: 0.0.0.0:0 is not a loopback address, and the namespace has no token; add one with tdf token add, or set client_ca")
	expect.True(t, errors.As(err, new(*config.Error)), "the error is", err)
	ca := newAuthority(t)
	withCA := cfg
	withCA.TLSCert, withCA.TLSKey = ca.issue("server", x509.ExtKeyUsageServerAuth, time.Hour)
	withCA.ClientCA = ca.file
	s := expect.Result(Open(t.Context(), withCA, []*manager.Manager{m}, testspace.Silent)).Value(t, "with client_ca")
	expect.NoError(t, s.Close())
	webtest.AddToken(t, m, access.Token{Name: "a", Role: access.Viewer})
	s = expect.Result(Open(t.Context(), cfg, []*manager.Manager{m}, testspace.Silent)).Value(t, "with a token")
	expect.NoError(t, s.Close())
}

func TestOpenRefusesFiles(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	cert, key := ca.issue("server", x509.ExtKeyUsageServerAuth, time.Hour)
	_, otherKey := ca.issue("server", x509.ExtKeyUsageServerAuth, time.Hour)
	empty := filepath.Join(t.TempDir(), "empty")
	expect.NoError(t, os.WriteFile(empty, nil, 0o600))
	for _, c := range []struct{ cert, key, ca, want string }{
		{"missing", key, "", "[http] tls_cert: open missing: no such file or directory"},
		{cert, "missing", "", "[http] tls_cert: open missing: no such file or directory"},
		{empty, key, "", "[http] tls_cert: tls: failed to find any PEM data in certificate input"},
		{cert, otherKey, "", "[http] tls_cert: tls: private key does not match public key"},
		{cert, key, "missing", "[http] client_ca: open missing: no such file or directory"},
		{cert, key, empty, "[http] client_ca: the file has no certificate"},
		{cert, key, key, "[http] client_ca: the file has no certificate"},
	} {
		cfg := usual(t)
		cfg.TLSCert, cfg.TLSKey, cfg.ClientCA = c.cert, c.key, c.ca
		_, err := Open(t.Context(), cfg, []*manager.Manager{nil}, testspace.Silent)
		expect.Fails(t, err, c.want, c)
		expect.True(t, errors.As(err, new(*config.Error)), "the error is", err)
	}
	open := filepath.Join(t.TempDir(), "open")
	expect.NoError(t, os.WriteFile(open, nil, 0o644))
	for path, want := range map[string]string{"missing": "[http] users: open missing: no such file or directory", open: "its mode is 0644", cert: "[http] users: "} {
		cfg := usual(t)
		cfg.Users = path
		_, err := Open(t.Context(), cfg, []*manager.Manager{nil}, testspace.Silent)
		expect.Fails(t, err, want)
		expect.True(t, errors.As(err, new(*config.Error)), "the error is", err)
	}
}

func TestAddressInUse(t *testing.T) {
	first := expect.Result(Open(t.Context(), usual(t), []*manager.Manager{newManager(t)}, testspace.Silent)).Value(t)
	defer first.Close()
	cfg := usual(t)
	cfg.Listen = strings.TrimPrefix(first.URL, "http://")
	expect.Result(Open(t.Context(), cfg, []*manager.Manager{serialManager(t)}, testspace.Silent)).Fails(t, "serve the HTTP API: listen tcp "+cfg.Listen)
}

// Over TLS, clients choose between HTTP/1.1 and HTTP/2. Old versions of TLS, and calls without TLS, are refused.
func TestTLS(t *testing.T) {
	m, ca, cfg := newManager(t), newAuthority(t), usual(t)
	cfg.TLSCert, cfg.TLSKey = ca.issue("server", x509.ExtKeyUsageServerAuth, time.Hour)
	s := run(t, cfg, m, nil)
	token := webtest.AddToken(t, m, access.Token{Name: "a", Role: access.Viewer})
	for protocol, http2 := range map[int]bool{1: false, 2: true} {
		status, got := call(t, caller(t, ca.client("", ""), http2), s.URL+"/api/v1/tasks", token)
		expect.Equal(t, status, 200, "HTTP", protocol)
		expect.Equal(t, got, protocol, status)
	}
	old := ca.client("", "")
	old.MaxVersion = tls.VersionTLS11
	expect.Equal(t, statusOf(t, caller(t, old, false), s.URL+"/healthz", ""), 0, "the status with TLS 1.1")
	expect.Equal(t, statusOf(t, caller(t, nil, false), strings.Replace(s.URL, "https", "http", 1)+"/healthz", ""), 400, "the status without TLS")
}

// A certificate of client_ca stands for the token that its common name names. All others stand for nothing.
func TestClientCertificates(t *testing.T) {
	m, ca, cfg := newManager(t), newAuthority(t), usual(t)
	cfg.TLSCert, cfg.TLSKey = ca.issue("server", x509.ExtKeyUsageServerAuth, time.Hour)
	cfg.ClientCA = ca.file
	s := run(t, cfg, m, nil)
	viewer := webtest.AddToken(t, m, access.Token{Name: "viewer", Role: access.Viewer})
	webtest.AddToken(t, m, access.Token{Name: "lab", Role: access.Worker})
	other := newAuthority(t)
	tasks := func(a *authority, name string, usage x509.ExtKeyUsage, life time.Duration, token string) int {
		return statusOf(t, caller(t, ca.client(a.issue(name, usage, life)), true), s.URL+"/api/v1/tasks", token)
	}
	const user = x509.ExtKeyUsageClientAuth
	expect.Equal(t, tasks(ca, "viewer", user, time.Hour, ""), 200, "the status of the certificate of a viewer")
	expect.Equal(t, tasks(ca, "lab", user, time.Hour, ""), 403, "the status of the certificate of a worker")
	expect.Equal(t, tasks(ca, "lab", user, time.Hour, viewer), 200, "the status of a viewer's token with the certificate of a worker")
	expect.Equal(t, tasks(ca, "viewer", user, time.Hour, viewer+"x"), 401, "the status of a wrong token with a certificate")
	for _, name := range []string{"", "nobody", "Viewer", "viewer\x00", "view*", strings.Repeat("x", 5000)} {
		expect.Equal(t, tasks(ca, name, user, time.Hour, ""), 401, "the status of a certificate with the name", name)
	}
	expect.Equal(t, tasks(other, "viewer", user, time.Hour, ""), 0, "the status of a certificate of another authority")
	expect.Equal(t, tasks(ca, "viewer", user, -time.Hour, ""), 0, "the status of an expired certificate")
	expect.Equal(t, tasks(ca, "viewer", x509.ExtKeyUsageServerAuth, time.Hour, ""), 0, "the status of a certificate of a server")
	expect.Equal(t, statusOf(t, caller(t, ca.client("", ""), true), s.URL+"/api/v1/tasks", ""), 401, "the status without a certificate")
	expect.NoError(t, admin.New(m).RemoveToken(t.Context(), "viewer"))
	expect.Equal(t, tasks(ca, "viewer", user, time.Hour, ""), 401, "the status of a certificate after its token was removed")
}

// Without client_ca, a certificate of the client stands for nothing.
func TestCertificateThatNobodyAskedFor(t *testing.T) {
	m, ca, cfg := newManager(t), newAuthority(t), usual(t)
	cfg.TLSCert, cfg.TLSKey = ca.issue("server", x509.ExtKeyUsageServerAuth, time.Hour)
	s := run(t, cfg, m, nil)
	webtest.AddToken(t, m, access.Token{Name: "viewer", Role: access.Viewer})
	expect.Equal(t, statusOf(t, caller(t, ca.client(ca.issue("viewer", x509.ExtKeyUsageClientAuth, time.Hour)), true), s.URL+"/api/v1/tasks", ""), 401, "the status")
}

// dial opens a connection on which the test writes the bytes of calls by itself.
func dial(t testing.TB, s *Server) net.Conn {
	t.Helper()
	c := expect.Result(net.Dial("tcp", s.listener.Addr().String())).Value(t)
	t.Cleanup(func() { c.Close() })
	return c
}

// memory is a listener for connections in memory.
type memory struct {
	connections chan net.Conn
	closed      chan struct{}
	close       func()
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.connections:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error   { m.close(); return nil }
func (m *memory) Addr() net.Addr { return &net.TCPAddr{} }

// A bubble is a server with a clock of its own, and with connections in memory.
type bubble struct {
	*testing.T
	*Server
	stop func()
	done chan error
}

// inBubble runs a server whose clock moves whenever nothing else happens.
func inBubble(t *testing.T, test func(*bubble)) {
	m := newManager(t)
	synctest.Test(t, func(t *testing.T) {
		s := expect.Result(Open(t.Context(), usual(t), []*manager.Manager{m}, testspace.Silent)).Value(t)
		expect.NoError(t, s.Close())
		closed := make(chan struct{})
		s.listener = &memory{make(chan net.Conn), closed, sync.OnceFunc(func() { close(closed) })}
		s.announce = func(context.Context) {}
		ctx, stop := context.WithCancel(t.Context())
		b := &bubble{t, s, stop, make(chan error, 1)}
		go func() { b.done <- s.Run(ctx) }()
		test(b)
		stop()
		expect.NoError(t, <-b.done)
	})
}

// dial opens a connection, and returns nil if the server accepts none.
func (b *bubble) dial() net.Conn {
	b.Helper()
	client, server := net.Pipe()
	b.Cleanup(func() { client.Close() })
	of := b.listener.(*memory)
	select {
	case of.connections <- server:
		return client
	case <-of.closed:
		return nil
	}
}

// pass waits until a time has passed.
func (b *bubble) pass(d time.Duration) {
	ctx, end := context.WithTimeout(b.Context(), d)
	defer end()
	<-ctx.Done()
}

const get = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

// A client that sends a part of a header, or nothing after a call, loses its connection.
func TestSlowClients(t *testing.T) {
	inBubble(t, func(b *bubble) {
		for sent, longest := range map[string]time.Duration{"": headerTime, "GET /he": headerTime, get[:len(get)-2] + "X-": headerTime, get: idleTime} {
			begun, c := time.Now(), b.dial()
			fmt.Fprint(c, sent)
			text := expect.Result(io.ReadAll(c)).Value(b) // returns when the server has closed the connection
			expect.Equal(b, strings.Contains(string(text), " 200 OK"), sent == get, sent)
			expect.Equal(b, time.Since(begun), longest, sent)
		}
	})
}

// A client that sends a byte at a time cannot hold a connection longer than one that sends nothing.
func TestDrippingClient(t *testing.T) {
	inBubble(t, func(b *bubble) {
		begun, c := time.Now(), b.dial()
		go io.Copy(io.Discard, c)
		var err error
		for header := "GET / HTTP/1.1\r\nX: " + strings.Repeat("x", maxHeader); err == nil && header != ""; header = header[1:] {
			_, err = c.Write([]byte(header[:1]))
			b.pass(headerTime / 100)
		}
		expect.Fails(b, err, "", "the server has read the whole header")
		expect.Compare(b, time.Since(begun), "<=", headerTime+headerTime/50)
	})
}

// A body that comes too slowly ends its call, also over HTTP/2.
func TestSlowBody(t *testing.T) {
	m, ca, cfg := newManager(t), newAuthority(t), usual(t)
	cfg.TLSCert, cfg.TLSKey = ca.issue("server", x509.ExtKeyUsageServerAuth, time.Hour)
	d := &webtest.Deadlines{}
	d.Reads.Pass()
	s := run(t, cfg, m, func(s *Server) { d.Handler, s.server.Handler = s.server.Handler, d })
	token := webtest.AddToken(t, m, access.Token{Name: "a", Role: access.Operator})
	for _, http2 := range []bool{false, true} {
		expect.Equal(t, slowCall(t, caller(t, ca.client("", ""), http2), s.URL+"/api/v1/tasks", token), http.StatusRequestTimeout, "HTTP/2:", http2)
	}
	for _, left := range d.Reads.Left() {
		expect.Compare(t, left, "<=", 20*callTime) // the route opens many tasks, so a call may take ten times as long
	}
	expect.Equal(t, statusOf(t, caller(t, ca.client("", ""), true), s.URL+"/api/v1/stats", token), http.StatusOK, "another call")
	expect.Equal(t, expect.Result(m.Counts(t.Context())).Value(t).String(), "", "tasks")
}

// slowCall sends a call whose body does not end, and returns the status of the answer.
func slowCall(t *testing.T, c *http.Client, url, token string) int {
	t.Helper()
	body, writer := io.Pipe()
	defer writer.Close()
	go writer.Write([]byte("{"))
	r := expect.Result(http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)).Value(t)
	answer := expect.Result(c.Do(webtest.Set(r, token))).Value(t)
	defer answer.Body.Close()
	return answer.StatusCode
}

// A connection beyond the share of its address is closed, and the others go on.
func TestConnections(t *testing.T) {
	s := run(t, usual(t), newManager(t), func(s *Server) { s.listener.(*sharing).connections = pool.New(2) })
	first, second := dial(t, s), dial(t, s)
	_, err := second.Read(make([]byte, 1))
	expect.Fails(t, err, "", "more than the half of an address")
	fmt.Fprint(first, get)
	_, err = http.ReadResponse(bufio.NewReader(first), nil)
	expect.NoError(t, err)
	first.Close()
	expect.Eventually(t, "a later connection has its place", func() bool {
		later := dial(t, s)
		fmt.Fprint(later, get)
		_, err := http.ReadResponse(bufio.NewReader(later), nil)
		return later.Close() == nil && err == nil
	})
}

// A stopping server finishes the calls that are under way, and accepts no others.
func TestStop(t *testing.T) {
	inBubble(t, func(b *bubble) {
		begun, finish := make(chan struct{}), make(chan struct{})
		b.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(begun)
			<-finish
			_, _ = io.WriteString(w, "finished")
		})
		c := b.dial()
		fmt.Fprint(c, get)
		<-begun
		b.stop()
		synctest.Wait()
		expect.Equal(b, b.dial(), nil, "a further connection")
		close(finish)
		text := expect.Result(io.ReadAll(c)).Value(b)
		expect.True(b, strings.HasSuffix(string(text), "finished"), string(text))
	})
}

// A call that does not end does not keep the server from stopping.
func TestStopDoesNotWaitForEver(t *testing.T) {
	inBubble(t, func(b *bubble) {
		begun := make(chan struct{})
		b.server.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(begun)
			<-r.Context().Done() // ends with the connection
		})
		fmt.Fprint(b.dial(), get)
		<-begun
		stopped := time.Now()
		b.stop()
		expect.NoError(b, <-b.done)
		expect.Equal(b, time.Since(stopped), drainTime)
		b.done <- nil
	})
}

// A call whose length is ambiguous is refused, so that no proxy can take a part of it for another call.
func TestAmbiguousLength(t *testing.T) {
	m := newManager(t)
	s := run(t, usual(t), m, nil)
	token := webtest.AddToken(t, m, access.Token{Name: "a", Role: access.Operator})
	const task = `{"program":"p"}`
	for _, headers := range []string{
		"Content-Length: 15\r\nContent-Length: 0\r\n", "Content-Length: 15, 0\r\n", "Content-Length: +15\r\n", "Content-Length: -1\r\n", "Content-Length: 0x0f\r\n", "Content-Length : 15\r\n",
		"Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: identity\r\n", "Transfer-Encoding: chunked, chunked\r\n", "Transfer-Encoding: xchunked\r\n",
		"Transfer-Encoding : chunked\r\n", " Content-Length: 15\r\n", "X: y\r\n\tz\rContent-Length: 15\r\n",
	} {
		c := dial(t, s)
		fmt.Fprintf(c, "POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%s\r\n%s", token, headers, task)
		answer := expect.Result(http.ReadResponse(bufio.NewReader(c), nil)).Value(t)
		expect.Compare(t, answer.StatusCode, ">=", 400, headers)
		expect.Compare(t, answer.StatusCode, "<=", 501, headers)
	}
	// With both headers, only the chunks count, and the connection ends: what follows them is no other call.
	c := dial(t, s)
	fmt.Fprintf(c, "POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"+
		"POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", token, len(task), task)
	_, _ = io.Copy(io.Discard, c)
	expect.Equal(t, expect.Result(m.Counts(t.Context())).Value(t).String(), "", "tasks")
}
