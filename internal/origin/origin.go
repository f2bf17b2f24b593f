package origin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tdf-framework/tdf/internal/lazy"
	"github.com/tdf-framework/tdf/internal/task"
)

// NewRequest returns a request without a body. It moves the URL's credentials to a header, because errors quote URLs.
// Its own error does not quote the URL.
func NewRequest(ctx context.Context, method, location string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, location, nil)
	if err != nil {
		return nil, errors.New("not a valid URL")
	}
	if user := req.URL.User; user != nil {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
		req.URL.User = nil
	}
	req.Header.Set("User-Agent", "tdf")
	return req, nil
}

// Reason returns the cause of an error of [Client]. The text of the cause contains no credentials, no queries, and not
// the URL that net/http adds. Reason returns a *[RedirectError] if the client refused a redirect.
func Reason(err error) error {
	if quoting := (&url.Error{}); errors.As(err, &quoting) {
		err = quoting.Err
	}
	if refused := (&RedirectError{}); errors.As(err, &refused) {
		return refused
	}
	return redacted{err}
}

// redacted is an error whose text shows no credentials and no queries of URLs. For example, the error may quote the URL
// of a proxy or of a redirect.
type redacted struct{ err error }

var (
	userinfo = lazy.Regexp(`://\S*@`)
	query    = lazy.Regexp(`\?[^\s"']+`)
)

func (r redacted) Error() string {
	return query().ReplaceAllString(userinfo().ReplaceAllString(r.err.Error(), "://***@"), "?***")
}
func (r redacted) Unwrap() error { return r.err }

const maxRedirects = 10

// Client returns a client that follows at most 10 redirects, to http and https only. After a redirect, the client sends
// no Referer header, and it sends credentials only to the first origin. A transport of [NewTransport] refuses some
// addresses. Pass the errors of the client to [Reason].
func Client(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: locations{transport}, CheckRedirect: checkRedirect}
}

// checkRedirect refuses a redirect with an error, or removes the headers that the next request must not have.
func checkRedirect(req *http.Request, via []*http.Request) error {
	to := task.HideCredentials(req.URL.String())
	last := via[len(via)-1].URL
	switch {
	case req.URL.Scheme != task.SchemeHTTP && req.URL.Scheme != task.SchemeHTTPS:
		return refuse("redirected to %s, which is neither http nor https", to)
	case req.URL.Scheme == task.SchemeHTTP && last.Scheme == task.SchemeHTTPS:
		return refuse("redirected from https to %s, which is not encrypted", to)
	case len(via) > maxRedirects:
		return refuse("more than %d redirects", maxRedirects)
	}
	for _, earlier := range via {
		if earlier.URL.String() == req.URL.String() {
			return refuse("the redirects form a loop through %s", to)
		}
	}
	req.Header.Del("Referer") // the header would contain the query of the previous URL, which may contain a token
	if originOf(req.URL) != originOf(via[0].URL) {
		req.Header.Del("Authorization") // net/http would send this header to other ports and to subdomains, too
	}
	return nil
}

// originOf returns the origin of a URL: its scheme, host and port. The credentials of a URL
// belong to its origin, and a client sends them nowhere else.
func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = u.Scheme
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + cmp.Or(standardPorts[port], port)
}

var standardPorts = map[string]string{task.SchemeHTTP: "80", task.SchemeHTTPS: "443"}

// locations refuses a redirect with an invalid Location header, because net/http would quote the header in an error.
type locations struct{ http.RoundTripper }

func (l locations) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(guarded(req))
	if err != nil || resp.StatusCode < 300 || resp.StatusCode > 399 {
		return resp, err
	}
	if _, err := req.URL.Parse(resp.Header.Get("Location")); err != nil {
		resp.Body.Close()
		return nil, refuse("redirected to a Location that is not a valid URL")
	}
	return resp, nil
}

// A RedirectError means that the client has refused a redirect. A repeated request would fail again.
type RedirectError struct{ reason string }

func (e *RedirectError) Error() string { return e.reason }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*RedirectError) Code() task.Code { return task.CodeForbidden }

func refuse(format string, args ...any) error {
	return &RedirectError{fmt.Sprintf(format, args...)}
}
