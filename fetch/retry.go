package fetch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// maxRetries is the number of retries of a download.
const maxRetries = 3

// temporary marks an error after which a download is retried.
type temporary struct{ err error }

func (t temporary) Error() string { return t.err.Error() }
func (t temporary) Unwrap() error { return t.err }

// retry calls the function try. While the error is temporary, it repeats the call, at most maxRetries times. The
// pauses double on average. They are random, so that many workers do not retry at the same time.
func (j *job) retry(ctx context.Context, try func() (string, error)) (string, error) {
	pause := j.RetryPause
	for n := 1; ; n++ {
		sum, err := try()
		if err == nil || !errors.As(err, &temporary{}) || ctx.Err() != nil {
			return sum, err
		}
		if n > maxRetries {
			return "", fmt.Errorf("%w (tried %d times)", err, n)
		}
		j.Log.Info("download failed, retrying", "source", j.src.String(), "err", err)
		if err := sleep(ctx, jitter(pause)); err != nil {
			return "", err
		}
		pause *= 2
	}
}

// jitter returns a random duration between 0.5 d and 1.5 d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d+1) }

// A status is the http status of a response, if it is not 200.
type status int

func (s status) Error() string { return fmt.Sprintf("%d %s", int(s), http.StatusText(int(s))) }

func statusError(code int) error {
	err := status(code)
	if code == http.StatusTooManyRequests || code >= 500 {
		return temporary{err}
	}
	return err
}
