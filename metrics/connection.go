package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A connection collects the metrics of this process's connection to Redis.
type connection struct{ admin *admin.Admin }

var (
	outages = prometheus.NewDesc("tdf_redis_outages_total", "Outages of Redis that this process has noticed.",
		nil, nil)
	unconfirmed = prometheus.NewDesc("tdf_redis_unconfirmed_total",
		"Calls of this process whose writes too few replicas of Redis have confirmed in time.", nil, nil)
	latency = prometheus.NewDesc("tdf_redis_latency_seconds",
		"Time for which calls of this process waited for Redis's answer.", nil, nil)
)

// Describe sends the descriptions of the metrics.
func (c *connection) Describe(to chan<- *prometheus.Desc) {
	to <- outages
	to <- unconfirmed
	to <- latency
}

// Collect sends the metrics.
func (c *connection) Collect(to chan<- prometheus.Metric) {
	is := c.admin.Connection()
	calls := is.Latency
	to <- prometheus.MustNewConstMetric(outages, prometheus.CounterValue, float64(is.Outages))
	to <- prometheus.MustNewConstMetric(unconfirmed, prometheus.CounterValue, float64(is.Unconfirmed))
	buckets, sofar := map[float64]uint64{}, uint64(0)
	for i, count := range calls.Counts {
		sofar += uint64(count)
		if i < len(conn.LatencyBounds) {
			buckets[conn.LatencyBounds[i].Seconds()] = sofar
		}
	}
	to <- prometheus.MustNewConstHistogram(latency, sofar, calls.Sum.Seconds(), buckets)
}
