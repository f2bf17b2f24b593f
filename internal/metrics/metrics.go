package metrics

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/redisstate/counts"
)

// mostQueues is the largest number of queues with metrics of their own: the busiest ones. The metrics of all others are
// those of the queue "other".
const mostQueues = 200

// readTime is how long a scrape may wait for Redis.
const readTime = 5 * time.Second

// Of returns the metrics of the administrators' namespaces. Each reading of the metrics reads Redis. While Redis does
// not answer, the only metric of a namespace is tdf_up, which is 0.
func Of(all ...*admin.Admin) prometheus.Gatherer {
	if len(all) == 1 {
		return &namespace{admin: all[0], wait: readTime}
	}
	var several namespaces
	for _, a := range all {
		several = append(several, &namespace{admin: a, wait: readTime})
	}
	return several
}

// namespaces gather the metrics of several namespaces, all at the same time, because each of them may wait for Redis.
type namespaces []*namespace

// Gather reads the metrics.
func (all namespaces) Gather() ([]*dto.MetricFamily, error) {
	var read sync.WaitGroup
	gathered := make(prometheus.Gatherers, len(all))
	for i, n := range all {
		read.Go(func() {
			families, err := n.Gather()
			gathered[i] = prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return families, err })
		})
	}
	read.Wait()
	return gathered.Gather()
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

// A Process is a process that serves metrics.
type Process struct {
	Admins []*admin.Admin // of its namespaces
	// CertificateEnds is the end of the certificate with which it serves TLS; zero without one.
	CertificateEnds time.Time
	Log             *slog.Logger
}

// Handler serves the metrics of the namespaces, and those of the process. It answers at most two calls at the same
// time, so that many readers do not keep Redis busy.
func (p Process) Handler() http.Handler { return p.handler(Of(p.Admins...)) }

func (p Process) handler(own prometheus.Gatherer) http.Handler {
	process := prometheus.NewRegistry()
	process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&connection{p})
	both := func() ([]*dto.MetricFamily, error) {
		families, _ := own.Gather()
		others, err := process.Gather()
		return append(families, others...), err
	}
	return promhttp.HandlerFor(prometheus.GathererFunc(both), promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(p.Log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
		MaxRequestsInFlight: 2,
	})
}

// A namespace gathers the metrics of a namespace.
type namespace struct {
	admin      *admin.Admin
	wait       time.Duration // for Redis
	queues     admin.QueueCounter
	activities counts.ActivityCounter
}

// Gather reads the metrics. It returns no error.
func (n *namespace) Gather() ([]*dto.MetricFamily, error) {
	ctx, cancel := context.WithTimeout(context.Background(), n.wait)
	defer cancel()
	var w writer
	counted := make(chan error, 1)
	go func() {
		var err error
		w.activities, err = n.admin.Activity(ctx, &n.activities, mostQueues)
		counted <- err
	}()
	s, err := n.admin.StatsAgain(ctx, &n.queues)
	err = cmp.Or(<-counted, err)
	w.namespace = s.Namespace
	up := w.family(dto.MetricType_GAUGE, "tdf_up",
		"1 if Redis has answered, and otherwise 0. Then all other metrics of the namespace are missing.")
	if err != nil {
		up.add(0)
		return w.families, nil
	}
	up.add(1)
	w.stats(&s)
	w.counts()
	return slices.DeleteFunc(w.families, func(f *dto.MetricFamily) bool { return len(f.Metric) == 0 }), nil
}
