package web

import (
	"net/http"

	"github.com/tdf-framework/tdf/metrics"
)

// metricsPath is the path where Prometheus looks by default. It needs a token, as the API does.
const metricsPath = "/metrics"

// addMetrics adds the metrics of the namespace and of this process (docs/metrics.md).
func (a *api) addMetrics() {
	handler := metrics.Handler(a.admin, a.Log)
	a.mux.HandleFunc("GET "+metricsPath, func(w http.ResponseWriter, r *http.Request) {
		if a.mayPass(callOf(r.Context()), toInspect) {
			handler.ServeHTTP(w, r)
		}
	})
}
