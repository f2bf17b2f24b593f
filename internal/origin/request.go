package origin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
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
	userinfo = regexp.MustCompile(`://\S*@`)
	query    = regexp.MustCompile(`\?[^\s"']+`)
)

func (r redacted) Error() string {
	return query.ReplaceAllString(userinfo.ReplaceAllString(r.err.Error(), "://***@"), "?***")
}
func (r redacted) Unwrap() error { return r.err }
