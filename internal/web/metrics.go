package web

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/metrics"
)

// metricsPath is the path where Prometheus looks by default. It needs a token, as the API does.
const metricsPath = "/metrics"

// addMetrics adds the metrics of the namespaces and of this process (docs/metrics.md).
func (a *api) addMetrics() {
	all := []*admin.Admin{a.admin}
	for _, m := range a.Shards {
		all = append(all, admin.New(m))
	}
	handler := metrics.Process{Admins: all, CertificateEnds: a.CertificateEnds, Log: a.Log}.Handler()
	a.mux.HandleFunc("GET "+metricsPath, func(w http.ResponseWriter, r *http.Request) {
		if !a.mayPass(callOf(r.Context()), toInspect) {
			return
		}
		err := a.work(r.Context(), a.Timeout, func(ctx context.Context) error {
			handler.ServeHTTP(w, r.WithContext(ctx))
			return nil
		})
		if err != nil {
			a.problemOf(r.Context(), err).write(w)
		}
	})
}

// knownTime is how long Redis may take to answer whether a token is still valid that has read the metrics before. With
// the time for the metrics, it is below Prometheus's usual timeout of 10 s.
const knownTime = 2 * time.Second

// readerOf returns the token of a call that reads the metrics. While Redis does not answer, a token that has read them
// before may read them: they then say little more than that Redis does not answer, and an alert needs this.
func (a *api) readerOf(ctx context.Context, r *http.Request) (access.Token, error) {
	key := sha256.Sum256(fmt.Append(nil, r.Header["Authorization"]))
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		key = sha256.Sum256(fmt.Append(key[:], r.TLS.VerifiedChains[0][0].Subject.CommonName))
	}
	a.mu.Lock()
	known, found := a.readers[key]
	a.mu.Unlock()
	if found {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, min(knownTime, a.Timeout))
		defer cancel()
	}
	t, err := a.tokenOf(ctx, r)
	if found && err != nil && !errors.Is(err, access.ErrDenied) && known.Holds(a.clock()) {
		return known, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if delete(a.readers, key); err == nil && len(a.readers) < access.MaxTokens {
		a.readers[key] = t
	}
	return t, err
}
