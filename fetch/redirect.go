package fetch

import (
	"fmt"
	"net/http"

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
	return nil
}

// A finalError comes through net/http, and is not worth another try.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }

func finally(format string, args ...any) error {
	return &finalError{fmt.Errorf(format, args...)}
}
