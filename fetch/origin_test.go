package fetch

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// redirects is an http transport that answers requests with redirects.
type redirects struct {
	locations map[string]string // maps a URL to the Location of its answer; "" means no redirect
	seen      map[string]string // maps a URL to the user names and referrers in its requests
}

func (a *redirects) RoundTrip(r *http.Request) (*http.Response, error) {
	user, _, _ := r.BasicAuth()
	a.seen[r.URL.String()] += user + r.Header.Get("Referer") + "."
	resp := &http.Response{StatusCode: 200, Header: http.Header{}, ContentLength: -1, Body: io.NopCloser(strings.NewReader(goodScript)), Request: r}
	if to := a.locations[r.URL.String()]; to != "" {
		resp.StatusCode = http.StatusFound
		resp.Header.Set("Location", to)
	}
	return resp, nil
}

// After a redirect, credentials are sent only to the source's scheme, host and port.
func TestCredentialsStayWithTheirOrigin(t *testing.T) {
	web := &redirects{seen: map[string]string{}, locations: map[string]string{
		"http://h.example/run.sh":     "http://h.example:80/same",
		"http://h.example:80/same":    "http://sub.h.example/a",
		"http://sub.h.example/a":      "http://h.example:8080/b",
		"http://h.example:8080/b":     "http://h.example/back",
		"http://h.example/back":       "https://h.example/c",
		"https://h.example/c":         "https://own:pw@other.example/d",
		"https://own@other.example/d": "",
	}}
	f := newFetcher(t)
	f.Transport = web
	fetchWorks(t, f, "http://bob:hush@h.example/run.sh")
	want := map[string]string{
		"http://h.example/run.sh": "bob.", "http://h.example:80/same": "bob.",
		"http://sub.h.example/a": ".", "http://h.example:8080/b": ".", "https://h.example/c": ".",
	}
	for url, user := range want {
		expect.Equal(t, web.seen[url], user, "the request for", url, "had the user")
	}
	for url, users := range web.seen {
		if strings.Contains(users, "bob") && !strings.HasPrefix(url, "http://h.example/") {
			expect.Equal(t, url, "http://h.example:80/same", users)
		}
	}
}

// Errors never contain the query or the credentials of a redirect's Location, even if the Location is malformed.
func TestErrorsHideQueriesOfLocations(t *testing.T) {
	for location, want := range map[string]string{
		"http://h.example/%zz?token=hush":      "redirected to a Location that is not a valid URL",
		"http://u:hush@h.example:x/?k=hush":    "redirected to a Location that is not a valid URL",
		"://?token=hush":                       "redirected to a Location that is not a valid URL",
		"mailto:x?token=hush":                  "redirected to mailto:x?token=***, which is neither http nor https",
		"file:///x?token=hush#hush":            "which is neither http nor https",
		"http:///x?token=hush":                 "download: ",
		"http://h.example/run.sh?token=***":    "download: ",
		"http://loop.example/run.sh?k=hush":    "download: ",
		"gopher://u:hush@h.example/?hush#hush": "which is neither http nor https",
	} {
		web := &redirects{seen: map[string]string{}, locations: map[string]string{
			"http://h.example/run.sh": location, location: location,
		}}
		f := newFetcher(t)
		f.Transport = web
		_, err := f.Fetch(t.Context(), "prog", "http://h.example/run.sh")
		if err == nil && !strings.HasPrefix(location, "http://h.example/run.sh") {
			expect.True(t, strings.HasPrefix(location, "http:///"), location, "no error")
		}
		if err != nil {
			expect.NotContains(t, err.Error(), "hush", location)
			expect.Contains(t, err.Error(), want, location)
		}
	}
}
