// Package metrics has the metrics of a namespace for Prometheus (docs/metrics.md). They come from Redis, so every
// process of TDF shows the whole namespace.
package metrics
