package fetch

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

func TestStatusCodes(t *testing.T) {
	tests := []struct {
		code     int
		requests int32
		want     string
	}{
		{404, 1, "/x.tar.gz: download: 404 Not Found"},
		{401, 1, "download: 401 Unauthorized"},
		{204, 1, "download: 204 No Content"},
		{206, 1, "download: 206 Partial Content"},
		{304, 1, "download: 304 Not Modified"},
		{429, 4, "download: 429 Too Many Requests (tried 4 times)"},
		{500, 4, "download: 500 Internal Server Error (tried 4 times)"},
		{503, 4, "download: 503 Service Unavailable (tried 4 times)"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.code), func(t *testing.T) {
			var requests atomic.Int32
			base := serveFunc(t, func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				w.WriteHeader(tt.code)
			})
			fetchFails(t, newFetcher(t), base+"/x.tar.gz", "fetching "+base, tt.want)
			expect.Equal(t, requests.Load(), tt.requests, "requests")
		})
	}
}

// flaky starts a server and returns its address. The server passes all requests of a download to the handler bad,
// except the last retry. It answers the last retry with the file.
func flaky(t *testing.T, bad http.HandlerFunc) string {
	var requests atomic.Int32
	return serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) <= maxRetries {
			bad(w, r)
			return
		}
		_, _ = w.Write([]byte(goodScript))
	})
}

func TestRetryTemporaryErrors(t *testing.T) {
	tests := map[string]http.HandlerFunc{
		"500":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"short": cutShort,
		"reset": func(w http.ResponseWriter, _ *http.Request) { hijack(w).Close() },
	}
	for name, bad := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFetcher(t)
			p := fetchWorks(t, f, flaky(t, bad)+"/run.sh")
			expect.Equal(t, p.SHA256, sumOf([]byte(goodScript)), "the content includes bytes of an earlier try")
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The clock of synctest makes sure that the last try cannot time out, even on a slow machine.
func TestRetriedAfterSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, tries := newFetcher(t), 0
		f.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			if tries++; tries <= maxRetries {
				<-r.Context().Done() // ends at the client's idle timeout
				return nil, r.Context().Err()
			}
			return &http.Response{StatusCode: 200, ContentLength: -1, Body: io.NopCloser(strings.NewReader(goodScript))}, nil
		})
		began := time.Now()
		fetchWorks(t, f, "http://example.org/run.sh")
		took := time.Since(began)
		expect.Compare(t, took, ">=", maxRetries*DefaultIdleTimeout)
		expect.Compare(t, took, "<=", (maxRetries+1)*DefaultIdleTimeout)
	})
}

func hijack(w http.ResponseWriter) net.Conn {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	return conn
}

// cutShort announces more bytes than it sends.
func cutShort(w http.ResponseWriter, _ *http.Request) {
	conn := hijack(w)
	defer conn.Close()
	_, _ = fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc")
}

func TestBodiesThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"short": {cutShort, "download: the connection ended after 3 of 1000 bytes (tried 4 times)"},
		"short, in chunks": {func(w http.ResponseWriter, _ *http.Request) {
			conn := hijack(w)
			defer conn.Close()
			_, _ = fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
		}, "the connection ended early, after 3 bytes"},
		"empty": {func(http.ResponseWriter, *http.Request) {}, "x.zip: download: the source is empty (0 bytes)"},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		}, "x.zip: download: more than 100000 bytes (max_program_bytes)"},
		"announced above the limit": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100001")
		}, "more than 100000 bytes (max_program_bytes)"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFetcher(t)
			f.Limits.Bytes = 100_000
			fetchFails(t, f, serveFunc(t, c.serve)+"/x.zip", c.want)
		})
	}
}

func TestSlowServer(t *testing.T) {
	f := newFetcher(t)
	f.IdleTimeout = 50 * time.Millisecond
	base, _ := blocking(t)
	fetchFails(t, f, base+"/run.sh", "download: no data for 0.05 s (tried 4 times)")
}

// If a server sends nothing for too long while the fetcher does not read, for example because the disk is slow, the download is
// tried again, too.
func TestSlowServerBetweenTwoReads(t *testing.T) {
	f := newFetcher(t)
	f.IdleTimeout = time.Millisecond
	f.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return &http.Response{StatusCode: http.StatusOK, ContentLength: -1, Body: io.NopCloser(strings.NewReader(goodScript)), Request: r}, nil
	})
	fetchFails(t, f, "http://127.0.0.1/run.sh", "download: no data for 0.001 s (tried 4 times)")
}

func TestConnectionRefused(t *testing.T) {
	err := fetchFails(t, newFetcher(t), "http://u:hush@"+redistest.FreeAddr(t)+"/run.sh?k=hush", "connection refused", "(tried 4 times)")
	expect.True(t, !strings.Contains(err.Error(), "hush"), err)
}

func TestRedirects(t *testing.T) {
	target := serve(t, []byte(goodScript))
	mux := http.NewServeMux()
	for n := range 12 {
		mux.HandleFunc(fmt.Sprintf("/%d/run.sh", n), func(w http.ResponseWriter, r *http.Request) {
			to := fmt.Sprintf("/%d/run.sh", n-1)
			if n == 0 {
				to = target + "/run.sh"
			}
			http.Redirect(w, r, to, http.StatusFound)
		})
	}
	mux.Handle("/loop/run.sh", http.RedirectHandler("/loop2?token=hush", http.StatusTemporaryRedirect))
	mux.Handle("/loop2", http.RedirectHandler("/loop/run.sh", http.StatusTemporaryRedirect))
	mux.Handle("/file/run.sh", http.RedirectHandler("file:///etc/passwd", http.StatusMovedPermanently))
	base := serveFunc(t, mux.ServeHTTP)

	fetchWorks(t, newFetcher(t), base+"/9/run.sh") // ten redirects
	fails := map[string]string{
		"/10/run.sh":   "download: more than 10 redirects",
		"/loop/run.sh": "download: the redirects form a loop through " + base + "/loop/run.sh",
		"/file/run.sh": "redirected to file:///etc/passwd, which is neither http nor https",
	}
	for path, want := range fails {
		err := fetchFails(t, newFetcher(t), base+path, want)
		expect.True(t, !strings.Contains(err.Error(), "hush"), err)
	}
}

func TestRedirectFromEncrypted(t *testing.T) {
	plain := serve(t, []byte(goodScript))
	s := httptest.NewTLSServer(http.RedirectHandler(plain+"/run.sh", http.StatusFound))
	t.Cleanup(s.Close)
	f := newFetcher(t)
	f.Transport = s.Client().Transport
	fetchFails(t, f, s.URL+"/run.sh", "redirected from https to "+plain+"/run.sh, which is not encrypted")
}

func TestCertificate(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(goodScript)) }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	f := newFetcher(t)
	err := fetchFails(t, f, s.URL+"/run.sh", "download: tls: failed to verify certificate")
	expect.True(t, !strings.Contains(err.Error(), "tried"), "the download was retried", err)
	f.Transport = s.Client().Transport
	fetchWorks(t, f, s.URL+"/run.sh")
}
