package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A connection collects the metrics of this process's connections to Redis and to clients.
type connection struct{ Process }

var (
	outages = prometheus.NewDesc("tdf_redis_outages_total", "Outages of Redis that this process has noticed.",
		nil, nil)
	unconfirmed = prometheus.NewDesc("tdf_redis_unconfirmed_total",
		"Calls of this process whose writes too few replicas of Redis have confirmed in time.", nil, nil)
	certificate = prometheus.NewDesc("tdf_certificate_expiry_timestamp_seconds",
		"End of the certificate with which this process serves TLS (http), or by which Redis knows it (redis).",
		[]string{"section"}, nil)
	latency = prometheus.NewDesc("tdf_redis_latency_seconds",
		"Time for which calls of this process waited for Redis's answer.", nil, nil)
)

// Describe sends the descriptions of the metrics.
func (c *connection) Describe(to chan<- *prometheus.Desc) {
	to <- outages
	to <- unconfirmed
	to <- latency
	to <- certificate
}

// Collect sends the metrics.
func (c *connection) Collect(to chan<- prometheus.Metric) {
	var failed, unsure int64
	var waited time.Duration
	ends := map[string]time.Time{"http": c.CertificateEnds}
	counts := make([]uint64, len(conn.LatencyBounds)+1)
	for _, a := range c.Admins {
		is := a.Connection()
		failed, unsure, waited = failed+is.Outages, unsure+is.Unconfirmed, waited+is.Latency.Sum
		ends["redis"] = is.CertificateEnds // all namespaces have one Redis
		for i, count := range is.Latency.Counts {
			counts[i] += uint64(count)
		}
	}
	to <- prometheus.MustNewConstMetric(outages, prometheus.CounterValue, float64(failed))
	to <- prometheus.MustNewConstMetric(unconfirmed, prometheus.CounterValue, float64(unsure))
	buckets, sofar := map[float64]uint64{}, uint64(0)
	for i, count := range counts {
		sofar += count
		if i < len(conn.LatencyBounds) {
			buckets[conn.LatencyBounds[i].Seconds()] = sofar
		}
	}
	to <- prometheus.MustNewConstHistogram(latency, sofar, waited.Seconds(), buckets)
	for section, end := range ends {
		if !end.IsZero() {
			to <- prometheus.MustNewConstMetric(certificate, prometheus.GaugeValue, float64(end.Unix()), section)
		}
	}
}
