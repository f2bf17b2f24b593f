package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/tdf-framework/tdf/internal/origin"
)

// download writes the content of an http or https source to the file payload. After a temporary error, it starts the
// download again.
func (j *job) download(ctx context.Context) (string, error) {
	transport := j.Transport
	if transport == nil {
		// without decompression, because the SHA-256 and the limits apply to the bytes that were sent
		t := origin.NewTransport(15 * time.Second)
		defer t.CloseIdleConnections()
		transport = t
	}
	client := origin.Client(transport)
	return j.retry(ctx, func() (string, error) { return j.attempt(ctx, client) })
}

// attempt sends one request, follows redirects, and writes the body of the response to the file payload.
func (j *job) attempt(ctx context.Context, client *http.Client) (string, error) {
	fetching := ctx
	ctx, idle := newIdleGuard(fetching, j.IdleTimeout)
	defer idle.stop()
	req, err := origin.NewRequest(ctx, http.MethodGet, j.src.Location)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", transportError(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", statusError(resp.StatusCode)
	}
	if resp.ContentLength > j.Limits.Bytes {
		return "", j.Limits.tooManyBytes()
	}
	body := &bodyReader{r: resp.Body, ctx: ctx, idle: idle, want: resp.ContentLength}
	sum, err := j.spool(ctx, body)
	if err != nil && ctx.Err() != nil && fetching.Err() == nil { // the guard may also end a copy between two reads
		return "", temporary{context.Cause(ctx)}
	}
	return sum, err
}

// bodyReader reads a response's body. It explains read errors, and returns an error for a truncated body.
type bodyReader struct {
	r    io.Reader
	ctx  context.Context
	idle *idleGuard
	got  int64
	want int64 // size of the body; -1 if unknown
}

func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.got += int64(n)
	if n > 0 {
		b.idle.reset()
	}
	switch {
	case err == nil, errors.Is(err, io.EOF) && (b.want < 0 || b.got == b.want):
		return n, err
	case b.ctx.Err() != nil:
		return n, temporary{context.Cause(b.ctx)}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return n, temporary{b.short()}
	}
	return n, temporary{fmt.Errorf("after %d bytes: %w", b.got, err)}
}

func (b *bodyReader) short() error {
	if b.want < 0 {
		return fmt.Errorf("the connection ended early, after %d bytes", b.got)
	}
	return fmt.Errorf("the connection ended after %d of %d bytes", b.got, b.want)
}

// transportError marks an error as temporary. An invalid certificate and a refused redirect are not temporary.
func transportError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return temporary{context.Cause(ctx)}
	}
	err = origin.Reason(err)
	if errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(*origin.RedirectError)) {
		return err
	}
	return temporary{err}
}

// idleGuard cancels a request that receives no data for too long. It also limits the time to connect.
type idleGuard struct {
	timer  *time.Timer
	after  time.Duration
	cancel context.CancelCauseFunc
}

func newIdleGuard(ctx context.Context, after time.Duration) (context.Context, *idleGuard) {
	ctx, cancel := context.WithCancelCause(ctx)
	g := &idleGuard{after: after, cancel: cancel}
	g.timer = time.AfterFunc(after, func() {
		cancel(fmt.Errorf("no data for %g s", after.Seconds()))
	})
	return ctx, g
}

func (g *idleGuard) reset() { g.timer.Reset(g.after) }

func (g *idleGuard) stop() {
	g.timer.Stop()
	g.cancel(nil)
}

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
