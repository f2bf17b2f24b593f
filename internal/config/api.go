package config

import (
	"net/url"
	"time"
)

// API says how a worker reaches the HTTP API (docs/remote-workers.md).
type API struct {
	URL       string // its origin, such as https://tdf.example.org:7379; "" means that the worker uses Redis
	TokenFile string
	CA        string // a PEM file of trusted authorities; "" means the authorities that the system trusts
}

// The lease of a worker over HTTP.
const leastAPILease, longestAPILease = time.Second, 300 * time.Second

// checkAPI returns an error if keys of a worker contradict each other, or if its token would travel over a network
// without TLS.
func (s *settings) checkAPI() error {
	api := s.worker.API
	if api.URL == "" {
		for _, x := range [][2]string{{"api_token_file", api.TokenFile}, {"api_ca", api.CA}} {
			if x[1] != "" {
				return s.fault("worker", x[0], "is set but api is not; expected both, or none")
			}
		}
		return nil
	}
	for _, k := range redisKeys {
		if k.section == "redis" && s.isSet(k.section, k.name) {
			return s.fault(k.section, k.name, "is set beside [worker] api, and a worker uses either Redis or the API; "+
				"expected one of them")
		}
	}
	to, _ := url.Parse(api.URL) // valid, because it is an origin
	switch {
	case len(s.namespaces) > 1:
		return s.fault("tdf", "namespaces", "is set beside [worker] api, which serves one namespace; expected namespace")
	case api.TokenFile == "":
		return s.fault("worker", "api", "is set but api_token_file is not; expected both")
	case to.Scheme != "https" && !isLoopback(to.Hostname()):
		return s.fault("worker", "api", quote(api.URL)+" has no TLS, and is not a loopback address; expected https://")
	case to.Scheme != "https" && api.CA != "":
		return s.fault("worker", "api", quote(api.URL)+" has no TLS; expected https://, or no api_ca")
	case s.worker.Lease < leastAPILease || s.worker.Lease > longestAPILease:
		return s.fault("worker", "lease", "with api, expected 1 to 300 s")
	case s.worker.MetricsListen != "":
		return s.fault("worker", "metrics_listen", "metrics come from Redis; with api, expected no address")
	}
	return nil
}
