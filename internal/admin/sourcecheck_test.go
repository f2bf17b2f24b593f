package admin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// The check works even if the manager's program has replaced http.DefaultTransport by its own transport.
func TestSourceCheckNeedsNoDefaultTransport(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	usual := http.DefaultTransport
	defer func() { http.DefaultTransport = usual }()
	http.DefaultTransport = struct{ http.RoundTripper }{usual}
	src := expect.Result(task.ParseSource(server.URL + "/x.zip")).Value(t)
	expect.Equal(t, httpCheck(t.Context(), src).State, Blocked)
}

// The check sends credentials only to the scheme, host and port of the source.
func TestSourceCheckKeepsCredentialsWithTheirOrigin(t *testing.T) {
	var received atomic.Value
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		received.Store(r.Header.Get("Authorization") + r.Header.Get("Referer"))
	}))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL+"/x.zip", http.StatusFound))
	defer server.Close()
	src := expect.Result(task.ParseSource(strings.Replace(server.URL, "http://", "http://user:secret@", 1) + "/x.zip?key=secret")).Value(t)
	expect.Equal(t, httpCheck(t.Context(), src).State, Passed)
	got := received.Load()
	expect.True(t, got == "", "the other server got", got)
}

// The check shows a server's Location without its credentials and its query, even if the Location is malformed.
func TestSourceCheckShowsNothingOfALocation(t *testing.T) {
	for location, want := range map[string]string{
		"http://h.example/%zz?token=hush":      "redirected to a Location that is not a valid URL",
		"http://u:hush@h.example:x/?k=hush":    "redirected to a Location that is not a valid URL",
		"mailto:x?token=hush":                  "redirected to mailto:x?token=***, which is neither http nor https",
		"gopher://u:hush@h.example/?hush#hush": "which is neither http nor https",
		"/x.zip?token=hush":                    "the redirects form a loop",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Location"] = []string{location}
			w.WriteHeader(http.StatusFound)
		}))
		src := expect.Result(task.ParseSource(server.URL + "/x.zip?token=hush")).Value(t)
		got := httpCheck(t.Context(), src)
		server.Close()
		expect.Equal(t, got.State, Ahead, location)
		expect.NotContains(t, got.Text, "hush", location)
		expect.Contains(t, got.Text, want, location)
	}
}
