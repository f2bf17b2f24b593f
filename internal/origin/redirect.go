package origin

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tdf-framework/tdf"
)

const mostRedirects = 10

// Client returns a client that follows at most 10 redirects, to http and https only. Credentials and the Referer header
// do not go to another origin. Its errors are for [Reason].
func Client(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: locations{transport}, CheckRedirect: checkRedirect}
}

// checkRedirect follows what leads, in few steps, to http or https.
func checkRedirect(req *http.Request, via []*http.Request) error {
	to := tdf.HideCredentials(req.URL.String())
	last := via[len(via)-1].URL
	switch {
	case req.URL.Scheme != tdf.SchemeHTTP && req.URL.Scheme != tdf.SchemeHTTPS:
		return refuse("redirected to %s, which is neither http nor https", to)
	case req.URL.Scheme == tdf.SchemeHTTP && last.Scheme == tdf.SchemeHTTPS:
		return refuse("redirected from https to %s, which is not encrypted", to)
	case len(via) > mostRedirects:
		return refuse("more than %d redirects", mostRedirects)
	}
	for _, earlier := range via {
		if earlier.URL.String() == req.URL.String() {
			return refuse("the redirects go in a circle, back to %s", to)
		}
	}
	req.Header.Del("Referer") // it would tell the next host what is in our query
	if of(req.URL) != of(via[0].URL) {
		req.Header.Del("Authorization") // net/http passes it on to other ports and to subdomains
	}
	return nil
}

// of returns what credentials are given for: scheme, host and port.
func of(u *url.URL) string {
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
		return nil, refuse("redirected to a Location that is not a valid URL")
	}
	return resp, nil
}

// A RedirectError says why a redirect is not followed. Another try would end in the same way.
type RedirectError struct{ reason string }

func (e *RedirectError) Error() string { return e.reason }

func refuse(format string, args ...any) error {
	return &RedirectError{fmt.Sprintf(format, args...)}
}
