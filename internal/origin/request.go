package origin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
)

// NewRequest returns a request without a body. Credentials of the URL become a header, which [Client] keeps from other
// origins and which no error shows. The error does not quote the URL.
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

// Reason returns the cause of an error of [Client] without the URL that net/http quotes, and without credentials and
// queries in the rest. The error is a *[RedirectError] if the server redirected to where the client does not go.
func Reason(err error) error {
	if quoting := (&url.Error{}); errors.As(err, &quoting) {
		err = quoting.Err
	}
	if refused := (&RedirectError{}); errors.As(err, &refused) {
		return refused
	}
	return hidden{err}
}

// hidden keeps what stands between :// and @, and queries, out of a text that others wrote: a
// proxy's URL, or where a server led.
type hidden struct{ err error }

var (
	userinfo = regexp.MustCompile(`://\S*@`)
	query    = regexp.MustCompile(`\?[^\s"']+`)
)

func (h hidden) Error() string {
	return query.ReplaceAllString(userinfo.ReplaceAllString(h.err.Error(), "://***@"), "?***")
}
func (h hidden) Unwrap() error { return h.err }
