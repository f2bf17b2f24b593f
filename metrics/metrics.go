package metrics

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"

	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/redisstate"
)

// mostQueues is the largest number of queues with metrics of their own: the busiest ones. The metrics of all others are those of
// the queue "other".
const mostQueues = 200

// readTime is how long a scrape may wait for Redis.
const readTime = 5 * time.Second

// Of returns the metrics of the administrator's namespace. Each reading of the metrics reads Redis. While Redis does not answer, the only
// metric is tdf_up, which is 0.
func Of(a *admin.Admin) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(&namespace{admin: a})
	return r
}

// Text returns metrics in Prometheus's text format.
func Text(g prometheus.Gatherer) ([]byte, error) {
	families, err := g.Gather()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

// Handler serves the metrics of the administrator's namespace, and those of this process. It answers at most two calls at the
// same time, so that many readers do not keep Redis busy.
func Handler(a *admin.Admin, log *slog.Logger) http.Handler {
	r := Of(a)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &connection{a})
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
		MaxRequestsInFlight: 2, Timeout: 2 * readTime,
	})
}

// A namespace collects the metrics of a namespace.
type namespace struct {
	admin      *admin.Admin
	queues     admin.QueueCounter
	activities redisstate.ActivityCounter
}

// Describe sends nothing, because the labels are known only when the metrics are read.
func (n *namespace) Describe(chan<- *prometheus.Desc) {}

// Collect reads the metrics.
func (n *namespace) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	w := writer{to: to}
	counted := make(chan error, 1)
	go func() {
		var err error
		w.activities, err = n.admin.Activity(ctx, &n.activities, mostQueues)
		counted <- err
	}()
	s, err := n.admin.StatsAgain(ctx, &n.queues)
	if w.namespace = s.Namespace; errors.Join(err, <-counted) != nil {
		w.gauge("tdf_up", "1 if Redis has answered, and otherwise 0. Then all other metrics of the namespace are missing.", 0)
		return
	}
	w.gauge("tdf_up", "1 if Redis has answered, and otherwise 0. Then all other metrics of the namespace are missing.", 1)
	w.stats(&s)
	w.counts()
}
