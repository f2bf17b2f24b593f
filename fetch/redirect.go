package fetch

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tdf-framework/tdf"
)

const mostRedirects = 10

// checkRedirect follows what leads, in few steps, to http or https.
func checkRedirect(req *http.Request, via []*http.Request) error {
	to := tdf.HideCredentials(req.URL.String())
	last := via[len(via)-1].URL
	switch {
	case req.URL.Scheme != tdf.SchemeHTTP && req.URL.Scheme != tdf.SchemeHTTPS:
		return finally("redirected to %s, which is neither http nor https", to)
	case req.URL.Scheme == tdf.SchemeHTTP && last.Scheme == tdf.SchemeHTTPS:
		return finally("redirected from https to %s, which is not encrypted", to)
	case len(via) > mostRedirects:
		return finally("more than %d redirects", mostRedirects)
	}
	for _, earlier := range via {
		if earlier.URL.String() == req.URL.String() {
			return finally("the redirects go in a circle, back to %s", to)
		}
	}
	req.Header.Del("Referer") // it would tell the next host what is in our query
	if origin(req.URL) != origin(via[0].URL) {
		req.Header.Del("Authorization") // net/http passes it on to other ports and to subdomains
	}
	return nil
}

// origin is what credentials are given for: scheme, host and port.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = u.Scheme
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + cmp.Or(standardPorts[port], port)
}

var standardPorts = map[string]string{tdf.SchemeHTTP: "80", tdf.SchemeHTTPS: "443"}

// locations refuses a Location that is no URL, before net/http quotes all of it in an error.
type locations struct{ http.RoundTripper }

func (l locations) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(req)
	if err != nil || resp.StatusCode < 300 || resp.StatusCode > 399 {
		return resp, err
	}
	if _, err := req.URL.Parse(resp.Header.Get("Location")); err != nil {
		resp.Body.Close()
		return nil, finally("redirected to a Location that is not a valid URL")
	}
	return resp, nil
}

// A finalError comes through net/http, and is not worth another try.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }

func finally(format string, args ...any) error {
	return &finalError{fmt.Errorf(format, args...)}
}
