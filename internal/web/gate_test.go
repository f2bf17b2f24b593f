package web

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A page of another host or origin cannot use the API, whatever token it has.
func TestHostAndOrigin(t *testing.T) {
	s := newSite(t, Options{Hosts: []string{"tdf.example.com"}})
	for host, status := range map[string]int{
		"localhost": 200, "localhost:80": 200, "LOCALHOST": 200, "127.0.0.1": 200, "127.0.0.1:7379": 200, "[::1]": 200, "[::1]:80": 200, "10.0.0.7": 200,
		"tdf.example.com": 200, "TDF.example.com:443": 200,
		"": 421, "example.com": 421, "evil.tdf.example.com": 421, "tdf.example.com.evil": 421, "localhost.evil": 421, "127.0.0.1.evil": 421, "[": 421,
	} {
		r := webtest.Call(t.Context(), s.tokens[access.Viewer], "GET", "/api/v1/tasks", "")
		r.Host = host
		expect.Equal(t, s.do(r).StatusCode, status, "host", host)
	}
	for origin, status := range map[string]int{
		"http://localhost": 200, "https://localhost": 200, "null": 403, "http://evil": 403, "http://localhost:81": 403, "localhost": 403, "file://localhost": 403,
	} {
		got := s.call(s.tokens[access.Viewer], "GET", "/api/v1/tasks", "", "Origin: "+origin)
		expect.Equal(t, got.StatusCode, status, "origin", origin)
		expect.Equal(t, got.Header.Get("Access-Control-Allow-Origin"), "", "origin", origin)
	}
	got := s.call("", "OPTIONS", "/api/v1/tasks", "", "Origin: http://localhost", "Access-Control-Request-Method: POST")
	expect.True(t, got.StatusCode >= 400, "a preflight call", got.StatusCode)
}

func TestPaths(t *testing.T) {
	s := newSite(t, Options{})
	for path, status := range map[string]int{
		"/healthz": 200, "/docs": 200, "/errors": 200, "/openapi.json": 200, "/openapi.yaml": 200, "/": 303, "/ui": 303, "/ui/login": 200, "/none": 404, "//healthz": 404, "/docs/../healthz": 404,
		"/api/v1/none": 401, "/api/v2/tasks": 401, "/metrics": 401,
	} {
		r := httptest.NewRequest("GET", "http://localhost/", nil)
		r.URL.Path = path
		got := s.do(r)
		expect.Equal(t, got.StatusCode, status, path)
		expect.Equal(t, got.Header.Get("X-Content-Type-Options"), "nosniff", path)
	}
	got := s.as(access.Operator, 405, "DELETE", "/api/v1/tasks", "")
	expect.Equal(t, fmt.Sprint(got.Header.Values("Allow")), "[GET POST]", got.Header)
	s.as(access.Operator, 404, "GET", "/api/v1/none", "")
	for role, status := range map[access.Role]int{access.Viewer: 200, access.Operator: 200, access.Submitter: 403, access.Worker: 403} {
		s.as(role, status, "GET", "/metrics", "")
	}
	expect.Contains(t, s.as(access.Viewer, 200, "GET", "/metrics", "").text, "\ntdf_up{namespace=")
	for _, page := range []string{"/docs", "/errors"} {
		got := s.call("", "GET", page, "")
		expect.NotContains(t, got.text, "<script", page, "loads something")
		if strings.Contains(got.text, "//") {
			expect.NotContains(t, got.text, "src=", page, "loads something")
		}
		policy := got.Header.Get("Content-Security-Policy")
		_, rest, _ := strings.Cut(got.text, "<style>")
		css, _, _ := strings.Cut(rest, "</style>")
		digest := sha256.Sum256([]byte(css))
		expect.Contains(t, policy, "style-src 'sha256-"+base64.StdEncoding.EncodeToString(digest[:])+"'", page)
		expect.NotContains(t, policy, "unsafe", page)
		expect.Compare(t, len(css), ">", 20, page, policy)
	}
}

func TestCorrelationID(t *testing.T) {
	s := newSite(t, Options{})
	for given, kept := range map[string]bool{"a": true, "a-1.b_c:d/e+f=g@h": true, strings.Repeat("x", 128): true, "": false, "a b": false, strings.Repeat("x", 129): false, "ä": false, "a\"": false} {
		got := s.call("", "GET", "/healthz", "", "X-Correlation-Id: "+given).Header.Get("X-Correlation-Id")
		expect.Equal(t, got == given, kept, given)
		expect.NotEqual(t, got, "", given)
	}
}

// An address that tries to log in often must wait, and the others need not.
func TestLimits(t *testing.T) {
	s := newSite(t, Options{})
	now := time.Now()
	s.clock = func() time.Time { return now }
	login := func(address string) *http.Response {
		r := webtest.Call(t.Context(), "", "POST", "/ui/login", "token="+s.tokens[access.Viewer], "Content-Type: application/x-www-form-urlencoded")
		r.RemoteAddr = address
		return s.do(r).Response
	}
	for range int(loginBurst / loginGap) {
		expect.Equal(t, login("192.0.2.1:7").StatusCode, 303, "a login")
	}
	expect.Equal(t, login("192.0.2.1:8").StatusCode, 429, "after many logins")
	expect.Equal(t, login("192.0.2.2:7").StatusCode, 303, "another address")
	now = now.Add(loginGap)
	expect.Equal(t, login("192.0.2.1:7").StatusCode, 303, "later")
	for i := range 3 * mostKeys {
		s.logins.take(fmt.Sprint(i), now)
	}
	expect.Compare(t, len(s.logins.free), "<=", mostKeys, "keys")
	for remote, want := range map[string]string{
		"192.0.2.1:7": "192.0.2.1", "[::ffff:192.0.2.1]:7": "192.0.2.1", "[2001:db8::1]:7": "2001:db8::/64", "[2001:db8::ffff]:8": "2001:db8::/64", "@": "@", "": "",
	} {
		expect.Equal(t, AddressOf(remote), want, remote)
	}
}

// While Redis does not answer, calls get 503 in time. Afterwards, they work.
func TestRedisAwayAndBack(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	s := siteOn(t, proxy.Addr, Options{})
	s.as(access.Operator, 201, "POST", "/api/v1/tasks", plain)
	s.as(access.Viewer, 200, "GET", "/metrics", "")
	proxy.Refuse()
	proxy.Cut()
	s.Timeout = testspace.Soon
	for _, call := range [][2]string{{"POST", "/api/v1/tasks"}, {"GET", "/api/v1/tasks/1"}, {"GET", "/readyz"}} {
		got := s.as(access.Operator, 503, call[0], call[1], plain)
		expect.NotContains(t, got.text, "127.0.0.1")
		expect.NotEqual(t, got.Header.Get("Retry-After"), "")
	}
	s.as(access.Operator, 200, "GET", "/healthz", "")
	expect.Contains(t, s.as(access.Viewer, 200, "GET", "/metrics", "").text, `tdf_up{namespace="`+s.cfg.Namespace+`"} 0`, "read before")
	s.as(access.Operator, 503, "GET", "/metrics", "")
	proxy.Resume()
	s.Timeout = time.Hour
	s.as(access.Operator, 201, "POST", "/api/v1/tasks", plain)
}

func TestReady(t *testing.T) {
	primary, replica := redistest.Start(t, redistest.Replicates), redistest.Start(t)
	replica.Follow(primary)
	s := siteOn(t, primary.Addr, Options{})
	expect.Equal(t, s.call("", "GET", "/readyz", "").StatusCode, 503, "without a server")
	store := testspace.Connect(t, s.cfg)
	now := expect.Result(store.Now(t.Context())).Value(t)
	s.redis.Do(t.Context(), "ZADD", s.cfg.Namespace+":servers", now.Add(3600).String(), "server") // counts for an hour
	got := s.call("", "GET", "/readyz", "")
	expect.Equal(t, got.StatusCode, 200, "with a server", got.text)
	expect.Contains(t, got.text, "ready\nprimary "+primary.Addr+"\nreplica "+replica.Addr+" (online, lag ")
	lags := admin.Replication{Primary: "a:1", Replicas: []conn.Replica{{Addr: "b:2", State: "wait_bgsave", Behind: 5}}}
	expect.Equal(t, replicationText(lags), "primary a:1\nreplica that lags b:2 (wait_bgsave, lag 0 s, 5 bytes behind)\n")
	s.Shards = []*manager.Manager{testspace.Manager(t, testspace.Config(t, primary.Addr))}
	got = s.call("", "GET", "/readyz", "")
	expect.Equal(t, got.StatusCode, 503, "a namespace without a server")
}

// A body that ends too early opens nothing.
func TestHalfClosedConnection(t *testing.T) {
	s := newSite(t, Options{})
	server := httptest.NewServer(s)
	defer server.Close()
	before := fmt.Sprint(s.world())
	for _, rest := range []string{"Content-Length: 1000\r\n\r\n" + plain, "Transfer-Encoding: chunked\r\n\r\n7\r\n{\"progr\r\n", "Transfer-Encoding: chunked\r\n\r\nzz\r\n"} {
		connection := expect.Result(net.Dial("tcp", server.Listener.Addr().String())).Value(t)
		fmt.Fprintf(connection, "POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%s", s.tokens[access.Operator], rest)
		_ = connection.(*net.TCPConn).CloseWrite()
		text, _ := io.ReadAll(connection)
		connection.Close()
		if len(text) != 0 {
			expect.Contains(t, string(text), " 400 ", rest)
		}
	}
	expect.Equal(t, fmt.Sprint(s.world()), before, "a part of a body has changed something")
}

// The log has neither tokens nor the texts of calls.
func TestNoSecretInLog(t *testing.T) {
	var log testlog.Buffer
	s := newSite(t, Options{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	secret := s.tokens[access.Operator]
	s.as(access.Operator, 201, "POST", "/api/v1/tasks", `{"program":"p","input":"hidden-input"}`)
	s.as(access.Operator, 200, "GET", "/api/v1/tasks?output=hidden-query", "")
	s.call(secret+"x", "GET", "/api/v1/tasks", "")
	s.call("", "GET", "/api/v1/tasks", "", "Authorization: Basic "+secret)
	text := log.String()
	expect.NotContains(t, text, secret)
	expect.NotContains(t, text, "hidden-")
	expect.Contains(t, text, "token=operator")
}

// A call whose function panics gets 500, and the others go on.
func TestPanic(t *testing.T) {
	s := newSite(t, Options{})
	s.mux.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { panic("secret") })
	got := s.call("", "GET", "/panic", "")
	expect.Equal(t, got.StatusCode, 500)
	expect.NotContains(t, got.text, "secret")
}

// More calls than AtOnce get 503, and more than its half get 429 for an address. Whether the process works can be seen all the same.
func TestAtOnce(t *testing.T) {
	s := newSite(t, Options{AtOnce: 2})
	ctx, end := context.WithCancel(t.Context())
	begun := make(chan struct{})
	s.mux.HandleFunc("GET /wait", func(http.ResponseWriter, *http.Request) { close(begun); <-ctx.Done() })
	done := make(chan struct{})
	go func() { defer close(done); s.call("", "GET", "/wait", "") }()
	<-begun
	other := webtest.Call(t.Context(), "", "GET", "/docs", "")
	other.RemoteAddr = "198.51.100.7:1"
	got := s.call("", "GET", "/docs", "")
	expect.Equal(t, got.StatusCode, 429)
	expect.NotEqual(t, got.Header.Get("Retry-After"), "")
	expect.Equal(t, s.do(other).StatusCode, 200, "another address")
	expect.NoError(t, s.places.Take("198.51.100.8", 1))
	expect.Equal(t, s.do(other).StatusCode, 503, "no place")
	expect.Equal(t, s.call("", "GET", "/healthz", "").StatusCode, 200, "without a place")
	expect.Contains(t, s.call("", "GET", "/readyz", "").text, "Redis", "without a place")
	s.places.Return("198.51.100.8", 1)
	end()
	<-done
	expect.Equal(t, s.call("", "GET", "/docs", "").StatusCode, 200, "status")
	expect.NoError(t, s.places.Take("token operator", 1))
	s.as(access.Operator, 429, "GET", "/api/v1/stats", "")
	s.as(access.Viewer, 200, "GET", "/api/v1/stats", "")
	s.places.Return("token operator", 1)
	expect.Equal(t, s.places.Taken(), 0, "places")
}

// A client without a token keeps no place while it sends a body or reads an answer, and a body that nobody reads does not keep its connection.
func TestSlowClientsWithoutAToken(t *testing.T) {
	s := newSite(t, Options{AtOnce: 1})
	d := &webtest.Deadlines{Handler: s}
	server := httptest.NewServer(d)
	defer server.Close()
	begin := func(text string) net.Conn {
		connection := expect.Result(net.Dial("tcp", server.Listener.Addr().String())).Value(t)
		t.Cleanup(func() { connection.Close() })
		fmt.Fprint(connection, text)
		return connection
	}
	var all []net.Conn
	for i, path := range []string{"/ui/login", "/ui/logout", "/api/v1/tasks", "/docs"} {
		all = append(all, begin("POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nx"))
		expect.Eventually(t, "the call has a deadline", func() bool { return len(d.Reads.Left()) > i })
	}
	for range 20 {
		begin("GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	expect.Eventually(t, "there is a place", func() bool {
		got := expect.Result(server.Client().Get(server.URL + "/ui/login")).Value(t)
		return got.Body.Close() == nil && got.StatusCode == 200
	})
	for _, left := range d.Reads.Left() {
		expect.Compare(t, left, "<=", bodyTime)
	}
	d.Reads.Pass()
	for _, connection := range all {
		text := expect.Result(io.ReadAll(connection)).Value(t)
		expect.Contains(t, string(text), "HTTP/1.1 4")
	}
}
