package fetch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// mostRetries follow the first try of a download.
const mostRetries = 3

// A temporary error may be gone at the next try.
type temporary struct{ err error }

func (t temporary) Error() string { return t.err.Error() }
func (t temporary) Unwrap() error { return t.err }

// retrying tries again while the error is temporary, with growing pauses of random length, so
// that many workers do not come back at once.
func (j *job) retrying(ctx context.Context, try func() (string, error)) (string, error) {
	pause := j.RetryPause
	for n := 1; ; n++ {
		sum, err := try()
		if err == nil || !errors.As(err, &temporary{}) || ctx.Err() != nil {
			return sum, err
		}
		if n > mostRetries {
			return "", fmt.Errorf("%w (tried %d times)", err, n)
		}
		j.Log.Info("a download failed and is tried again", "source", j.src.String(), "err", err)
		if err := sleep(ctx, jitter(pause)); err != nil {
			return "", err
		}
		pause *= 2
	}
}

// jitter returns between a half and one and a half of d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d+1) }

// A status is what an http server answered.
type status int

func (s status) Error() string { return fmt.Sprintf("%d %s", int(s), http.StatusText(int(s))) }

func statusError(code int) error {
	err := status(code)
	if code == http.StatusTooManyRequests || code >= 500 {
		return temporary{err}
	}
	return err
}
