package remote

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/secrets"
)

// A client makes calls of the API.
type client struct {
	http      *http.Client
	base      string
	tokenFile string
	log       *slog.Logger
	sleep     func(context.Context, time.Duration) // a pause between two attempts

	known  atomic.Bool // the server has accepted the token
	outage atomic.Bool // the last attempt of some call had no answer
}

// Bounds of calls.
const (
	answerTime  = 15 * time.Second // for an answer to a small call
	bulkTime    = 2 * time.Minute  // for a call with much data, as long as the server lets it take
	archiveTime = 10 * time.Minute // for an archive; the time of the fetch is a bound, too

	mostAnswer  = 128 << 20
	mostProblem = 64 << 10

	firstPause, longestPause = 100 * time.Millisecond, 5 * time.Second // between two attempts, without jitter
	longestRetryAfter        = 30 * time.Second
)

func newClient(cfg config.API, log *slog.Logger, sleep func(context.Context, time.Duration)) (*client, error) {
	if _, err := secrets.Text(cfg.TokenFile); err != nil {
		return nil, wrongKey("api_token_file", err)
	}
	trust, err := trusted(cfg)
	if err != nil {
		return nil, wrongKey("api_ca", err)
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: trust, TLSHandshakeTimeout: answerTime,
		ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 8,
		// so that a connection that was cut without a word holds up no call for longer
		HTTP2: &http.HTTP2Config{SendPingTimeout: answerTime, PingTimeout: answerTime},
	}
	return &client{
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		base: cfg.URL + "/api/v1", tokenFile: cfg.TokenFile, log: log, sleep: sleep,
	}, nil
}

func wrongKey(key string, err error) error {
	return &config.Error{Source: "configuration", Section: "worker", Key: key, Problem: err.Error(), Err: err}
}

// trusted returns which servers the worker trusts.
func trusted(cfg config.API) (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.CA == "" {
		return t, nil
	}
	pem, err := os.ReadFile(cfg.CA)
	if err != nil {
		return nil, err
	}
	t.RootCAs = x509.NewCertPool()
	if !t.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s contains no certificate in PEM form", cfg.CA)
	}
	return t, nil
}

// A request is a call of the API.
type request struct {
	method, path string // the path follows that of the API
	key          string // the Idempotency-Key, or ""
	body         any    // as JSON, or a []byte; nil for none
	answer       any    // where to put the answer, from JSON, or a *[]byte; nil for none
	longest      time.Duration
	several      bool // a part of the call may be at fault for status 500, so the caller must split it

	sent time.Time // when the attempt began that was answered
}

// A refusal is an answer that another attempt would get, too.
type refusal struct {
	status       int
	code, detail string
	after        time.Duration // how long the server asks to wait before another attempt
}

func (r *refusal) Error() string {
	return fmt.Sprintf("the API says: %d %s: %s", r.status, r.code, r.detail)
}

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (r *refusal) Code() task.Code { return task.Code(r.code) }

// An invalid refusal means that the call can never be accepted as it is.
type invalid struct{ *refusal }

// Unstorable makes it a broker.Unstorable.
func (invalid) Unstorable() {}

func (i invalid) Unwrap() error { return i.refusal }

// hasStatus reports whether err is a refusal with one of these statuses.
func hasStatus(err error, statuses ...int) bool {
	var r *refusal
	return errors.As(err, &r) && slices.Contains(statuses, r.status)
}

// An outageError is an answer after which the same call may succeed later, or that there was none.
type outageError struct {
	error
	after time.Duration // how long the server asks to wait
}

func (o *outageError) Unwrap() error { return o.error }

// call makes a call until there is an answer, or ctx ends. The error is a refusal, or the cause of ctx.
func (c *client) call(ctx context.Context, r *request) error {
	body, raw := r.body.([]byte)
	if r.body != nil && !raw {
		var err error
		if body, err = encode(r.body); err != nil {
			return invalid{&refusal{status: http.StatusUnprocessableEntity, code: string(task.CodeInvalid), detail: err.Error()}}
		}
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := c.attempt(ctx, r, body)
		var away *outageError
		switch {
		case !errors.As(err, &away):
			if err == nil {
				c.known.Store(true)
			}
			if c.outage.Swap(false) {
				c.log.Info("the API answers again")
			}
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !c.known.Load() && isLasting(err):
			return away.error
		case !c.outage.Swap(true):
			c.log.Warn("the API cannot be used, trying again", "error", away.error)
		}
		c.sleep(ctx, max(away.after, pause/2+rand.N(pause)))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// isLasting reports whether a worker that starts should not wait for the end of an outage. A worker that works waits,
// because a user may replace the token or the certificate.
func isLasting(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || hasStatus(err, http.StatusUnauthorized)
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// attempt makes a call once.
func (c *client) attempt(ctx context.Context, r *request, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, r.longest)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	token, err := secrets.Text(c.tokenFile)
	if err != nil {
		return &outageError{error: err}
	}
	req.Header.Set("Authorization", "Bearer "+string(token))
	req.Header.Set("User-Agent", "tdf")
	switch r.body.(type) {
	case nil:
	case []byte:
		req.Header.Set("Content-Type", "application/octet-stream")
	default:
		req.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	r.sent = time.Now()
	resp, err := c.http.Do(req)
	if err != nil {
		return &outageError{error: err}
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return refusalOf(resp, r.several)
	}
	if err := read(resp.Body, r.answer); err != nil {
		return &outageError{error: fmt.Errorf("read the answer of the API: %w", err)}
	}
	return nil
}

// read reads a whole answer.
func read(from io.Reader, answer any) error {
	if answer == nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(from, mostAnswer+1))
	switch raw, isRaw := answer.(*[]byte); {
	case err != nil:
		return err
	case len(text) > mostAnswer:
		return fmt.Errorf("it has more than %d bytes", mostAnswer)
	case isRaw:
		*raw = text
		return nil
	}
	return json.Unmarshal(text, answer)
}

// retryAfter returns how long the server asks to wait.
func retryAfter(resp *http.Response) time.Duration {
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // 0 without the header
	return min(time.Duration(min(max(seconds, 0), 3600))*time.Second, longestRetryAfter)
}

// asksToWait reports whether err is a refusal, and the server says that a later attempt may succeed.
func asksToWait(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.after > 0
}

// refusalOf returns the error for the answer to a call that failed. It may come from a proxy, and then has no problem.
func refusalOf(resp *http.Response, several bool) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, mostProblem)) // the status says enough
	var problem struct{ Code, Detail string }
	_ = json.Unmarshal(text, &problem) // as above
	r := &refusal{
		resp.StatusCode, cmp.Or(problem.Code, http.StatusText(resp.StatusCode)),
		cmp.Or(problem.Detail, "the answer does not say why"), retryAfter(resp),
	}
	switch s := resp.StatusCode; {
	case s == http.StatusUnauthorized, s == http.StatusRequestTimeout, s == http.StatusTooManyRequests,
		s >= 500 && s != http.StatusInsufficientStorage && !(several && s == http.StatusInternalServerError):
		return &outageError{r, r.after}
	case s == http.StatusBadRequest, s == http.StatusRequestEntityTooLarge, s == http.StatusUnprocessableEntity:
		return invalid{r}
	case s/100 == 3:
		r.detail = "the answer leads to another address, and the worker follows none"
	}
	return r
}
